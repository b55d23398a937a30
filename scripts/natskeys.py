"""NKEYs, the JWTs that they sign and the .creds file of a user, as NATS' tool `nsc` makes them; for tests. Needs OpenSSL 3."""

import base64
import binascii
import hashlib
import json
import subprocess
import time

KINDS = {"operator": 14 << 3, "account": 0, "user": 20 << 3}
SEED = 18 << 3


def encoded(data):
    """Base32 of some bytes and their CRC-16."""
    data += binascii.crc_hqx(data, 0).to_bytes(2, "little")
    return base64.b32encode(data).decode().rstrip("=")


def word(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class Key:
    """A new key of a kind, in a file of a folder."""

    def __init__(self, kind, folder, name):
        self.kind, self.name, self.file = kind, name, f"{folder}/{name}.key"
        self.openssl("genpkey", "-algorithm", "ed25519", "-out", self.file)
        # The last 32 bytes of both forms are the key itself.
        secret = self.openssl("pkey", "-in", self.file, "-outform", "DER")[-32:]
        public = self.openssl("pkey", "-in", self.file, "-pubout", "-outform", "DER")[-32:]
        prefix = KINDS[kind]
        self.public = encoded(bytes([prefix]) + public)
        self.seed = encoded(bytes([SEED | prefix >> 5, prefix << 3 & 0xFF]) + secret)

    def openssl(self, *arguments):
        return subprocess.run(["openssl", *arguments], check=True, capture_output=True).stdout

    def sign(self, data):
        # Ed25519 signs what is in a file only.
        with open(f"{self.file}.data", "wb") as file:
            file.write(data)
        return self.openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.file, "-in", f"{self.file}.data")

    def vouch(self, other, until=None, **claims):
        """A JWT of this key about another, valid for an hour or until a time in seconds since 1970."""
        now = int(time.time())
        body = {"iat": now, "exp": until or now + 3_600, "iss": self.public, "name": other.name, "sub": other.public,
                "nats": {"type": other.kind, "version": 2, **claims}}
        body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
        signed = word(b'{"typ":"JWT","alg":"ed25519-nkey"}') + b"." + word(json.dumps(body).encode())
        return (signed + b"." + word(self.sign(signed))).decode()


def credentials(jwt, key):
    """What is in a .creds file."""
    return (f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{key.seed}\n------END USER NKEY SEED------\n")


class Operator:
    """An operator with an account that may have streams; `config` is what a server that trusts it needs."""

    NO_LIMIT = {name: -1 for name in ("subs", "data", "payload", "imports", "exports", "conn", "leaf")} | {"wildcards": True}
    STREAMS = {name: -1 for name in ("mem_storage", "disk_storage", "streams", "consumer")}

    def __init__(self, folder):
        self.folder = folder
        self.key, self.system, self.account = (
            Key(kind, folder, name) for kind, name in (("operator", "operator"), ("account", "system"), ("account", "shop")))
        jwt = self.key.vouch(self.key, system_account=self.system.public)
        accounts = {account.public: self.key.vouch(account, limits=self.NO_LIMIT | more)
                    for account, more in ((self.system, {}), (self.account, self.STREAMS))}
        self.config = (f"operator: {jwt}\nsystem_account: {self.system.public}\nresolver: MEMORY\nresolver_preload: {{\n"
                       + "".join(f"  {public}: {jwt}\n" for public, jwt in accounts.items()) + "}\n")

    def user(self, name, account=None, **claims):
        """The .creds file of a new user."""
        key = Key("user", self.folder, name)
        jwt = (account or self.account).vouch(key, subs=-1, data=-1, payload=-1, **claims)
        path = f"{self.folder}/{name}.creds"
        with open(path, "w") as file:
            file.write(credentials(jwt, key))
        return path
