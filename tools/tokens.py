"""Checks that Countersign and PyJWT accept each other's tokens, JWKs and thumbprints. Then verifies mutated tokens: Countersign must
not accept a token whose signature OpenSSL (through `cryptography`) rejects."""

import base64
import hashlib
import json
import random
import re
import subprocess
import tempfile
import time
from pathlib import Path

import jwt
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
from cryptography.hazmat.primitives.hashes import SHA256

from .common import parse

ALGORITHMS = {"RS256": "RSAAlgorithm", "PS256": "RSAPSSAlgorithm", "ES256": "ECAlgorithm", "EdDSA": "OKPAlgorithm"}
THUMBPRINT = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}
NOW = 1_800_000_000
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def run(program, *arguments, stdin=None, expect=0):
    done = subprocess.run([program, *map(str, arguments)], input=stdin, capture_output=True, text=True)
    assert done.returncode == expect, f"{arguments}: {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    """Decodes base64url as leniently as possible, so that OpenSSL gets a signature that any decoder could have read."""
    text = re.sub(r"[^A-Za-z0-9_-]", "", text)
    text = text[: len(text) - 1] if len(text) % 4 == 1 else text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


# MARK: PyJWT


def exchange(program, algorithm, folder):
    def verify(key, token, user, expect=0):
        return run(program, "token", "verify", "--key", key, "--user", user, "--alg", algorithm, stdin=token, expect=expect)

    ours = json.loads(run(program, "key", "generate", "--out", folder, "--alg", algorithm, "--json"))
    private, public = Path(ours["private_key_file"]), Path(ours["public_key_file"])
    user = "rémi \"quote\" \\ \U0001F511"
    token = run(program, "token", "create", "--key", private, "--alg", algorithm, "--user", user, "--audience", "braze", "--kid", "k1")
    claims = jwt.decode(token, public.read_text(), algorithms=[algorithm], audience="braze")
    assert claims["sub"] == user and claims["exp"] - claims["iat"] == 3600, claims
    assert jwt.get_unverified_header(token) == {"alg": algorithm, "typ": "JWT", "kid": "k1"}
    verify(public, token, user)

    signer, now = serialization.load_pem_private_key(private.read_bytes(), None), int(time.time())
    theirs = jwt.encode({"sub": user, "exp": now + 60, "nbf": now, "x": {"y": [1, 2.5, None]}}, signer, algorithm=algorithm)
    verify(public, theirs, user)
    verify(public, theirs, "another", expect=3)
    verify(public, theirs[:-8] + "AAAAAAAA", user, expect=3)

    # Countersign verifies with PyJWT's JWK of the key, and its key id is the thumbprint of RFC 7638.
    implementation = getattr(jwt.algorithms, ALGORITHMS[algorithm])
    jwk = implementation(*(() if algorithm == "EdDSA" else (implementation.SHA256,))).to_jwk(signer.public_key())
    file = folder / "key.jwk"
    file.write_text(jwk)
    verify(file, theirs, user)
    members = json.loads(jwk)
    canonical = json.dumps({name: members[name] for name in THUMBPRINT[members["kty"]]}, separators=(",", ":"), sort_keys=True)
    assert encode(hashlib.sha256(canonical.encode()).digest()) == ours["id"], ours["id"]
    return signer


# MARK: Mutants


def mutant(rng, token, other):
    header, payload, signature = token.split(".")
    raw, theirs = decode(signature), other.split(".")

    def flipped():
        changed = bytearray(raw)
        changed[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        return bytes(changed)

    def member(part, name, value):
        return encode(json.dumps({**json.loads(decode(part)), name: value}).encode())

    def der():
        return utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:64], "big"))

    place, length, half = rng.randrange(len(token)), rng.randrange(1, 9), len(raw) // 2
    algorithm = rng.choice(["none", "HS256", "RS256", "PS256", "ES256", "EdDSA", "RS512"])
    return rng.choice([
        lambda: token[:place] + rng.choice(ALPHABET + ".=+/ \n") + token[place + 1:],
        lambda: token[:place] + token[place + length:],
        lambda: token + rng.choice(["=", "==", "\n", " ", ".", "A", "\0"]),
        lambda: f"{header}.{payload}.{encode(flipped())}",
        lambda: f"{header}.{payload}.{encode(raw[:rng.randrange(len(raw))])}",
        lambda: f"{header}.{payload}.{encode(raw + rng.randbytes(rng.randrange(1, 4)))}",
        lambda: f"{header}.{payload}.{encode(rng.choice([b'', bytes(64), bytes(256), bytes([255]) * 256, bytes([1]) * 64]))}",
        lambda: f"{header}.{payload}.{encode(raw[half:] + raw[:half])}",
        lambda: f"{header}.{payload}.{encode(der())}",
        lambda: f"{header}.{payload}.{signature[:-1]}{ALPHABET[(ALPHABET.index(signature[-1]) + 1) % 64]}",
        lambda: f"{header}.{member(payload, 'sub', 'admin')}.{signature}",
        lambda: f"{member(header, 'alg', algorithm)}.{payload}.{signature}",
        lambda: f"{header}.{payload}.{theirs[2]}",
        lambda: f"{header}.{theirs[1]}.{signature}",
    ])()


def openssl_accepts(key, algorithm, token):
    parts = token.split(".")
    if len(parts) != 3:
        return False
    data, raw = f"{parts[0]}.{parts[1]}".encode(), decode(parts[2])
    try:
        if algorithm == "EdDSA":
            key.verify(raw, data)
        elif algorithm == "ES256":
            half = len(raw) // 2
            numbers = (int.from_bytes(part, "big") for part in (raw[:half], raw[half:]))
            key.verify(utils.encode_dss_signature(*numbers), data, ec.ECDSA(SHA256()))
        else:
            kind = padding.PSS(padding.MGF1(SHA256()), 32) if algorithm == "PS256" else padding.PKCS1v15()
            key.verify(raw, data, kind, SHA256())
        return True
    except (InvalidSignature, ValueError):
        return False


def compare(program, algorithm, folder, key, count, rng):
    """Returns the mutated tokens that Countersign accepts and OpenSSL rejects."""
    good, other = (run(program, "token", "create", "--key", folder / "private.pem", "--alg", algorithm, "--user", user, "--now", NOW)
                   for user in ("user-1", "user-2"))
    tokens = [good, *(mutant(rng, good, other) for _ in range(count))]
    public = (folder / "public.pem").read_text()
    lines = [json.dumps({"name": str(number), "keys": [public], "token": token, "now": NOW, "expected_user": "user-1",
                         "config": {"algorithms": [algorithm]}}) for number, token in enumerate(tokens)]
    answers = run(program, "token", "verify", "--batch", "-", stdin="\n".join(lines)).splitlines()
    ours = [json.loads(line)["verdict"] == "accept" for line in answers]
    assert len(ours) == len(tokens), "the program printed no result for a token"
    theirs = [openssl_accepts(key, algorithm, token) for token in tokens]
    assert ours[0] and theirs[0], "the unchanged token is rejected"
    print(f"tokens: {algorithm}: {len(tokens)} tokens, {sum(ours)} accepted, {sum(theirs)} with a signature that OpenSSL accepts", flush=True)
    return [token for token, here, there in zip(tokens, ours, theirs) if here and not there]


def main(arguments):
    options = parse(arguments, "tokens", __doc__, count=400, seed=random.randrange(1 << 32))
    print(f"tokens: seed {options.seed}")
    rng, wrong = random.Random(options.seed), []
    for algorithm in ALGORITHMS:
        with tempfile.TemporaryDirectory() as name:
            signer = exchange(options.countersign, algorithm, Path(name))
            wrong += compare(options.countersign, algorithm, Path(name), signer.public_key(), options.count, rng)
    for token in wrong:
        print(f"tokens: accepted by Countersign, rejected by OpenSSL: {token}")
    print(f"tokens: PyJWT {jwt.__version__} and Countersign accept each other's tokens")
    return 1 if wrong else 0
