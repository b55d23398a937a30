#!/usr/bin/env python3
"""Tokens, JWKs and thumbprints in both directions between Countersign and PyJWT.

Makes a virtual environment with PyJWT in .venv (set COUNTERSIGN to another binary, VENV to another folder).
Exits 1 at the first difference.
"""
import json, os, subprocess, sys, tempfile, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("VENV", ROOT / ".venv"))
COUNTERSIGN = os.environ.get("COUNTERSIGN", str(ROOT / ".build/debug/countersign-cli"))

try:
    import jwt
    from cryptography.hazmat.primitives import serialization
except ImportError:
    python = VENV / "bin/python"
    if Path(sys.prefix) == VENV:
        sys.exit("PyJWT cannot be imported from " + str(VENV))
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", "PyJWT[crypto]"], check=True)
    sys.exit(subprocess.run([str(python), __file__]).returncode)

ALGORITHMS = {"RS256": "RSAAlgorithm", "PS256": "RSAPSSAlgorithm", "ES256": "ECAlgorithm", "EdDSA": "OKPAlgorithm"}


def run(*arguments, stdin=None, expect=0):
    done = subprocess.run([COUNTERSIGN, *arguments], input=stdin, capture_output=True, text=True)
    assert done.returncode == expect, f"{arguments}: {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def verify(key_file, token, user, algorithm, expect=0):
    return run("token", "verify", "--key", str(key_file), "--user", user, "--alg", algorithm, stdin=token, expect=expect)


def check(algorithm, folder):
    ours = json.loads(run("key", "generate", "--out", str(folder), "--alg", algorithm, "--json"))
    private, public = Path(ours["private_key_file"]), Path(ours["public_key_file"])
    user = "rémi \"quote\" \\ \U0001F511"

    token = run("token", "create", "--key", str(private), "--alg", algorithm, "--user", user, "--audience", "braze", "--kid", "k1")
    claims = jwt.decode(token, public.read_text(), algorithms=[algorithm], audience="braze")
    assert claims["sub"] == user and claims["exp"] - claims["iat"] == 3600, claims
    assert jwt.get_unverified_header(token) == {"alg": algorithm, "typ": "JWT", "kid": "k1"}
    verify(public, token, user, algorithm)

    signer = serialization.load_pem_private_key(private.read_bytes(), None)
    now = int(time.time())
    theirs = jwt.encode({"sub": user, "exp": now + 60, "nbf": now, "x": {"y": [1, 2.5, None]}}, signer, algorithm=algorithm)
    verify(public, theirs, user, algorithm)
    verify(public, theirs, "another", algorithm, expect=3)
    verify(public, theirs[:-8] + "AAAAAAAA", user, algorithm, expect=3)

    # Their JWK of our key is the same key here, and has the thumbprint that RFC 7638 says.
    implementation = getattr(jwt.algorithms, ALGORITHMS[algorithm])
    arguments = () if algorithm == "EdDSA" else (implementation.SHA256,)
    jwk = implementation(*arguments).to_jwk(signer.public_key())
    jwk_file = folder / "key.jwk"
    jwk_file.write_text(jwk)
    verify(jwk_file, theirs, user, algorithm)
    required = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}
    members = json.loads(jwk)
    import base64, hashlib

    canonical = json.dumps({name: members[name] for name in required[members["kty"]]}, separators=(",", ":"), sort_keys=True)
    thumbprint = base64.urlsafe_b64encode(hashlib.sha256(canonical.encode()).digest()).rstrip(b"=").decode()
    assert thumbprint == ours["id"], f"{thumbprint} is not {ours['id']}"
    print(f"ok {algorithm}")


with tempfile.TemporaryDirectory() as folder:
    for name in ALGORITHMS:
        directory = Path(folder) / name
        directory.mkdir()
        check(name, directory)
print(f"PyJWT {jwt.__version__} and Countersign agree")
