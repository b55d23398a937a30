#!/usr/bin/env python3
"""Mutated tokens judged by Countersign and by the OpenSSL command line: none may be accepted here whose signature
OpenSSL rejects, and none that nobody changed may be rejected.

COUNT sets how many mutants a key (default 400), SEED the random seed (printed), COUNTERSIGN the binary. Where
HAProxy is installed (HAPROXY=1), it judges the RS256 and ES256 mutants too, through its jwt_verify converter.
"""
import base64, json, os, random, re, socket, subprocess, sys, tempfile, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COUNTERSIGN = os.environ.get("COUNTERSIGN", str(ROOT / ".build/debug/countersign-cli"))
COUNT = int(os.environ.get("COUNT", "400"))
SEED = int(os.environ.get("SEED", str(random.randrange(1 << 32))))
NOW = 1_800_000_000
rng = random.Random(SEED)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    """As leniently as decoders come: whoever is stricter only rejects more."""
    text = re.sub(r"[^A-Za-z0-9_-]", "", text)
    text = text[: len(text) - 1] if len(text) % 4 == 1 else text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def der(raw):
    def integer(part):
        part = part.lstrip(b"\0") or b"\0"
        part = (b"\0" if part[0] & 0x80 else b"") + part
        return b"\2" + bytes([len(part)]) + part

    body = integer(raw[: len(raw) // 2]) + integer(raw[len(raw) // 2 :])
    return b"\x30" + bytes([len(body)]) + body


def openssl_accepts(algorithm, public, token, folder):
    parts = token.split(".")
    if len(parts) != 3:
        return False
    data, signature = folder / "data", folder / "signature"
    data.write_bytes((parts[0] + "." + parts[1]).encode())
    raw = decode(parts[2])
    signature.write_bytes(der(raw) if algorithm == "ES256" and 0 < len(raw) <= 128 else raw)
    if algorithm in ("EdDSA",):
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", data, "-sigfile", signature]
    else:
        options = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:32"] if algorithm == "PS256" else []
        command = ["openssl", "dgst", "-sha256", "-verify", public, *options, "-signature", signature, data]
    return subprocess.run([str(x) for x in command], capture_output=True).returncode == 0


def mutant(token, other):
    header, payload, signature = token.split(".")
    kind = rng.randrange(14)
    if kind == 0:
        place = rng.randrange(len(token))
        return token[:place] + rng.choice(ALPHABET + ".=+/ \n") + token[place + 1 :]
    if kind == 1:
        raw = bytearray(decode(signature))
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        return f"{header}.{payload}.{encode(bytes(raw))}"
    if kind == 2:
        raw = decode(signature)
        return f"{header}.{payload}.{encode(raw[:rng.randrange(len(raw))])}"
    if kind == 3:
        return f"{header}.{payload}.{encode(decode(signature) + rng.randbytes(rng.randrange(1, 4)))}"
    if kind == 4:
        constant = rng.choice([b"", bytes(64), bytes(256), b"\xff" * 256, b"\1" * 64])
        return f"{header}.{payload}.{encode(constant)}"
    if kind == 5:
        claims = json.loads(decode(payload))
        claims["sub"] = "admin"
        return f"{header}.{encode(json.dumps(claims).encode())}.{signature}"
    if kind == 6:
        fields = json.loads(decode(header))
        fields["alg"] = rng.choice(["none", "HS256", "RS256", "PS256", "ES256", "EdDSA", "RS512"])
        return f"{encode(json.dumps(fields).encode())}.{payload}.{signature}"
    if kind == 7:
        return f"{header}.{payload}.{other.split('.')[2]}"
    if kind == 8:
        return f"{header}.{other.split('.')[1]}.{signature}"
    if kind == 9:
        return token + rng.choice(["=", "==", "\n", " ", ".", "A", "\0"])
    if kind == 10:
        last = ALPHABET[(ALPHABET.index(signature[-1]) + 1) % 64]
        return f"{header}.{payload}.{signature[:-1]}{last}"
    if kind == 11:
        raw = decode(signature)
        half = len(raw) // 2
        return f"{header}.{payload}.{encode(raw[half:] + raw[:half])}"
    if kind == 12:
        return f"{header}.{payload}.{encode(der(decode(signature)[:64]))}"
    place, length = rng.randrange(len(token)), rng.randrange(1, 9)
    return token[:place] + token[place + length :]


class HAProxy:
    """One HAProxy on a free port that answers 200 where jwt_verify says 1."""

    def __init__(self, algorithm, public, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.name = {"EdDSA": None}.get(algorithm, algorithm)
        config = folder / "haproxy.cfg"
        config.write_text(
            f"""defaults
  mode http
  timeout client 5s
  timeout server 5s
  timeout connect 5s
frontend f
  bind 127.0.0.1:{self.port}
  http-request set-var(txn.t) http_auth_bearer
  http-request return status 200 if {{ var(txn.t),jwt_verify("{algorithm}","{public}") -m int 1 }}
  http-request return status 401
"""
        )
        self.process = subprocess.Popen(["haproxy", "-f", str(config), "-db"], stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("HAProxy does not answer")

    def accepts(self, token):
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            request = f"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
            connection.sendall(request.encode())
            return b" 200 " in connection.recv(100)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def main():
    print(f"seed {SEED}")
    failures = 0
    for algorithm in ("RS256", "PS256", "ES256", "EdDSA"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            subprocess.run([COUNTERSIGN, "key", "generate", "--out", name, "--alg", algorithm], check=True, capture_output=True)
            private, public = folder / "private.pem", folder / "public.pem"

            def create(user):
                command = [COUNTERSIGN, "token", "create", "--key", private, "--alg", algorithm, "--user", user, "--now", str(NOW)]
                return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

            good, other = create("user-1"), create("user-2")
            tokens = [good, *(mutant(good, other) for _ in range(COUNT))]
            lines = [
                json.dumps({"name": str(i), "keys": [public.read_text()], "token": token, "now": NOW, "expected_user": "user-1", "config": {"algorithms": [algorithm]}})
                for i, token in enumerate(tokens)
            ]
            answers = subprocess.run([COUNTERSIGN, "token", "verify", "--batch", "-"], input="\n".join(lines), check=True, capture_output=True, text=True)
            ours = [json.loads(line)["verdict"] == "accept" for line in answers.stdout.splitlines()]
            assert len(ours) == len(tokens), "a line has no answer"
            assert ours[0], "the unchanged token is rejected"
            proxy = HAProxy(algorithm, public, folder) if os.environ.get("HAPROXY") == "1" and algorithm in ("RS256", "ES256") else None
            accepted = theirs = 0
            for token, accepts in zip(tokens, ours):
                openssl = openssl_accepts(algorithm, public, token, folder)
                theirs += openssl
                accepted += accepts
                if accepts and not openssl:
                    print(f"FAIL {algorithm}: accepted here, rejected by OpenSSL: {token}")
                    failures += 1
                # A line break or NUL would end the header; HAProxy is not asked.
                if proxy and accepts and not re.search(r"[\x00-\x20]", token) and not proxy.accepts(token):
                    print(f"FAIL {algorithm}: accepted here, rejected by HAProxy: {token}")
                    failures += 1
            if proxy:
                proxy.stop()
            print(f"{algorithm}: {len(tokens)} tokens, accepted here {accepted}, signature good to OpenSSL {theirs}")
    sys.exit(1 if failures else 0)


main()
