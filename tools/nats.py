"""NATS servers (one, or a cluster of three), the messages of their stream, and NATS' keys and credentials files."""

import base64
import binascii
import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from .common import free_port, output, until

STREAM = "EVENTS"


def program():
    """The nats-server of this program's virtual environment."""
    return next(path for path in Path(sys.prefix).rglob("nats-server") if path.is_file())


class Client:
    """A client with the part of NATS' protocol that reads a stream."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        self.socket.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB _R.* 1\r\nPING\r\n')
        if self.file.readline() != b"PONG\r\n":
            raise OSError("no NATS server")
        self.number = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, subject, body=None):
        self.number += 1
        data = b"" if body is None else json.dumps(body).encode()
        self.socket.sendall(f"PUB $JS.API.{subject} _R.{self.number} {len(data)}\r\n".encode() + data + b"\r\n")
        line = self.file.readline().split()
        while line[:1] == [b"PING"]:
            self.socket.sendall(b"PONG\r\n")
            line = self.file.readline().split()
        return json.loads(self.file.read(int(line[-1]) + 2))


class NATS:
    """A nats-server with JetStream in a folder of its own."""

    def __init__(self, folder, more=""):
        self.folder, self.port, self.process = Path(folder), free_port(), None
        self.folder.mkdir(exist_ok=True)
        self.url, self.config, self.files = f"nats://127.0.0.1:{self.port}", self.folder / "nats.conf", self.folder / "js"
        self.config.write_text(f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{self.files}" }}\n{more}')

    def launch(self):
        """Starts the server without waiting."""
        with open(self.folder / "nats.log", "a") as log:
            self.process = subprocess.Popen([program(), "-c", self.config], stderr=log)

    def start(self):
        self.launch()
        until("a nats-server", lambda: "error" not in self.ask("INFO", {"error": None}))

    def ask(self, subject, otherwise):
        """The response of JetStream's API, or `otherwise` if the server does not respond."""
        try:
            with Client(self.port) as client:
                return client.ask(subject)
        except (OSError, ValueError, IndexError):
            return otherwise

    def info(self):
        return self.ask(f"STREAM.INFO.{STREAM}", {})

    def count(self):
        return self.info().get("state", {}).get("messages", 0)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def delete_last(self, count):
        """Deletes the last messages of the stream. The server still drops messages with their ids as duplicates."""
        with Client(self.port) as client:
            last = client.ask(f"STREAM.INFO.{STREAM}")["state"]["last_seq"]
            for number in range(max(1, last - count + 1), last + 1):
                client.ask(f"STREAM.MSG.DELETE.{STREAM}", {"seq": number})

    def messages(self):
        """The stream's messages in order, each as (sequence number, subject, headers, body)."""
        found = []
        with Client(self.port) as client:
            info = client.ask(f"STREAM.INFO.{STREAM}")
            if "error" in info:
                return []
            number, last = info["state"]["first_seq"], info["state"]["last_seq"]
            while number <= last:
                answer = client.ask(f"STREAM.MSG.GET.{STREAM}", {"seq": number, "next_by_subj": "countersign.>"})
                if "error" in answer:
                    break
                message = answer["message"]
                lines = base64.b64decode(message.get("hdrs", "")).decode().split("\r\n")
                headers = dict(line.split(": ", 1) for line in lines if ": " in line)
                found.append((message["seq"], message["subject"], headers, base64.b64decode(message.get("data", ""))))
                number = message["seq"] + 1
        return found

    def ids(self):
        return [headers["Countersign-Message-Id"] for _, _, headers, _ in self.messages()]


class NATSCluster:
    """A cluster of three servers, which can replicate a stream."""

    def __init__(self, folder):
        ports = [free_port() for _ in range(3)]
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
        self.servers = [NATS(Path(folder) / str(number), f"""
            server_name: n{number}
            cluster {{ name: c, listen: "127.0.0.1:{port}", routes: [ {routes} ] }}
            """) for number, port in enumerate(ports, 1)]
        self.url = ",".join(server.url for server in self.servers)

    def start(self):
        """Starts the servers that do not run, and waits until all respond."""
        for server in self.servers:
            if not server.process:
                server.launch()
        until("JetStream on all servers", lambda: all("error" not in server.ask("INFO", {"error": None}) for server in self.servers))

    def info(self):
        """The stream's info from any server, or an empty dictionary."""
        return next(filter(None, (server.info() for server in self.servers)), {})

    def leader(self):
        """The leader of the stream's replicas, or None during an election."""
        name = self.info().get("cluster", {}).get("leader", "")
        return self.servers[int(name[1:]) - 1] if name else None

    def is_whole(self):
        """Whether the stream has a leader and two other servers with all of its messages."""
        about = self.info().get("cluster", {})
        others = about.get("replicas", [])
        return bool(about.get("leader")) and len(others) == 2 and all(
            one.get("current") and not one.get("offline") for one in others)

    def count(self):
        return self.info().get("state", {}).get("messages", 0)

    def kill(self):
        for server in self.servers:
            server.kill()


def differences(wanted, found):
    missing, extra = len(set(wanted) - set(found)), len(found) - len(set(found))
    return f"{len(wanted)} stored, {len(found)} in the stream, {missing} missing, {extra} twice" + (
        "" if wanted == found else ", or out of order")


# MARK: Keys (NKEYs, and the JWTs that they sign), as NATS' tool `nsc` makes them

KINDS, SEED = {"operator": 14 << 3, "account": 0, "user": 20 << 3}, 18 << 3


def encoded(data):
    """Base32 of the data followed by its CRC-16, as in an NKEY."""
    return base64.b32encode(data + binascii.crc_hqx(data, 0).to_bytes(2, "little")).decode().rstrip("=")


def word(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class Key:
    """A new Ed25519 key. It is in a file, because OpenSSL's command line signs with keys in files."""

    def __init__(self, kind, folder, name):
        self.kind, self.name, self.file = kind, name, f"{folder}/{name}.key"
        output("openssl", "genpkey", "-algorithm", "ed25519", "-out", self.file)
        prefix = KINDS[kind]
        self.public = encoded(bytes([prefix]) + self.raw("-pubout"))
        self.seed = encoded(bytes([SEED | prefix >> 5, prefix << 3 & 0xFF]) + self.raw())

    def raw(self, *more):
        """The private or (with -pubout) public key: the last 32 bytes of its DER form."""
        return subprocess.run(["openssl", "pkey", "-in", self.file, *more, "-outform", "DER"], check=True, capture_output=True).stdout[-32:]

    def vouch(self, other, until=None, **claims):
        """A JWT that this key signs for another key (NATS' user or account claims), valid for an hour or until a time."""
        now = int(time.time())
        body = {"iat": now, "exp": until or now + 3_600, "iss": self.public, "name": other.name, "sub": other.public,
                "nats": {"type": other.kind, "version": 2, **claims}}
        body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
        signed = word(b'{"typ":"JWT","alg":"ed25519-nkey"}') + b"." + word(json.dumps(body).encode())
        data = Path(f"{self.file}.data")
        data.write_bytes(signed)
        signature = subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", self.file, "-in", data],
                                   check=True, capture_output=True).stdout
        return (signed + b"." + word(signature)).decode()


class Operator:
    """A NATS operator with an account that may have streams. `config` is the configuration of a server that trusts the operator."""

    NO_LIMIT = {name: -1 for name in ("subs", "data", "payload", "imports", "exports", "conn", "leaf")} | {"wildcards": True}
    STREAMS = {name: -1 for name in ("mem_storage", "disk_storage", "streams", "consumer")}

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        key, system, self.account = (
            Key(kind, folder, name) for kind, name in (("operator", "operator"), ("account", "system"), ("account", "shop")))
        accounts = "".join(f"  {account.public}: {key.vouch(account, limits=self.NO_LIMIT | more)}\n"
                           for account, more in ((system, {}), (self.account, self.STREAMS)))
        self.config = (f"operator: {key.vouch(key, system_account=system.public)}\nsystem_account: {system.public}\n"
                       f"resolver: MEMORY\nresolver_preload: {{\n{accounts}}}\n")

    def user(self, name, account=None, **claims):
        """Creates a user. Returns the path of its .creds file."""
        key = Key("user", self.folder, name)
        jwt = (account or self.account).vouch(key, subs=-1, data=-1, payload=-1, **claims)
        path = Path(self.folder) / f"{name}.creds"
        path.write_text(f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
                        f"-----BEGIN USER NKEY SEED-----\n{key.seed}\n------END USER NKEY SEED------\n")
        return path
