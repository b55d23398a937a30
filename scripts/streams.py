"""nats-servers, one or three together, gateways that feed a stream of theirs, and what is in it; for scripts that kill them."""

import base64
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request

STREAM = "EVENTS"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def check(what, holds, detail=""):
    if not holds:
        raise SystemExit(f"{what}: {detail}")
    print(f"{what}: ok", flush=True)


def wait(what, holds, seconds=90):
    """Returns once `holds()` is true."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {seconds} s")
        time.sleep(0.05)


class Client:
    """As much of NATS' protocol as reading a stream takes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        self.socket.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB _R.* 1\r\nPING\r\n')
        if self.file.readline() != b"PONG\r\n":
            raise OSError("no NATS server")
        self.number = 0

    def ask(self, subject, body=None):
        self.number += 1
        data = b"" if body is None else json.dumps(body).encode()
        self.socket.sendall(f"PUB $JS.API.{subject} _R.{self.number} {len(data)}\r\n".encode() + data + b"\r\n")
        line = self.file.readline().split()
        while line[:1] == [b"PING"]:
            self.socket.sendall(b"PONG\r\n")
            line = self.file.readline().split()
        return json.loads(self.file.read(int(line[-1]) + 2))

    def close(self):
        self.socket.close()


class Server:
    def __init__(self, program, folder, always, more=""):
        self.program, self.folder, self.port = program, folder, free_port()
        self.config = f"{folder}/nats.conf"
        with open(self.config, "w") as file:
            file.write(f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{folder}/js"'
                       + (", sync_interval: always" if always else "") + " }\n" + more)
        self.process = None

    def launch(self):
        """Starts it, and does not wait."""
        with open(f"{self.folder}/nats.log", "a") as log:
            self.process = subprocess.Popen([self.program, "-c", self.config], stderr=log)

    def start(self):
        self.launch()
        wait("the server answers", self.answers)

    def answers(self):
        try:
            client = Client(self.port)
            try:
                return "error" not in client.ask("INFO")
            finally:
                client.close()
        except (OSError, ValueError, IndexError):
            return False

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


class Cluster:
    """Three servers that keep their streams together."""

    def __init__(self, program, folder):
        ports = [free_port() for _ in range(3)]
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
        self.servers = []
        for number, port in enumerate(ports, 1):
            os.makedirs(f"{folder}/{number}")
            self.servers.append(Server(program, f"{folder}/{number}", False, f"""
                server_name: n{number}
                cluster {{ name: c, listen: "127.0.0.1:{port}", routes: [ {routes} ] }}
                """))

    @property
    def addresses(self):
        return ",".join(f"nats://127.0.0.1:{server.port}" for server in self.servers)

    def start(self):
        """Starts those that do not run, and waits until all keep all streams."""
        for server in self.servers:
            if not server.process:
                server.launch()
        wait("the servers have a leader", lambda: all(server.answers() for server in self.servers))

    def info(self):
        """What a server says about the stream; empty while none can."""
        for server in self.servers:
            try:
                client = Client(server.port)
                try:
                    return client.ask(f"STREAM.INFO.{STREAM}")
                finally:
                    client.close()
            except (OSError, ValueError, IndexError):
                pass
        return {}

    def leader(self):
        """The server that leads the stream; None while none does."""
        name = self.info().get("cluster", {}).get("leader", "")
        return self.servers[int(name[1:]) - 1] if name else None

    def is_whole(self):
        """Whether the stream has a leader, and two others have all that it has."""
        about = self.info().get("cluster", {})
        others = about.get("replicas", [])
        return bool(about.get("leader")) and len(others) == 2 and all(
            one.get("current") and not one.get("offline") for one in others)

    def count(self):
        return self.info().get("state", {}).get("messages", 0)

    def kill(self):
        for server in self.servers:
            server.kill()


class Gateway:
    def __init__(self, program, folder):
        self.program, self.data, self.folder = program, f"{folder}/data", folder
        self.key = self.run("app", "create", "shop").strip()
        self.port, self.process, self.count = free_port(), None, 0

    def run(self, *arguments):
        done = subprocess.run([self.program, *arguments, "--data", self.data], capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise SystemExit(f"{arguments}: {done.stderr}")
        return done.stdout

    def start(self):
        self.process = subprocess.Popen(
            [self.program, "serve", "--data", self.data, "--port", str(self.port), "--log-level", "warning"],
            stdout=subprocess.PIPE, stderr=open(f"{self.folder}/log", "a"), text=True)
        if not self.process.stdout.readline().startswith("http://"):
            raise SystemExit(f"the gateway does not start; see {self.folder}/log")

    def kill(self, how=signal.SIGKILL):
        if self.process:
            self.process.send_signal(how)
            self.process.wait(timeout=60)
            self.process.stdout.close()
            self.process = None

    def track(self, count, note=""):
        """Stores events, each wider by a note."""
        events = []
        for _ in range(count):
            self.count += 1
            events.append({"type": "track", "event": "Order", "userId": f"user-{self.count % 7}",
                           "messageId": f"m-{self.count}", "properties": {"total": 1.10} | ({"note": note} if note else {})})
        body = json.dumps({"batch": events, "writeKey": self.key}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/batch", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200

    def stored(self):
        database = sqlite3.connect(f"file:{self.data}/events.sqlite?mode=ro", uri=True)
        return [row[0] for row in database.execute("SELECT message_id FROM event ORDER BY seq")]

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmRSS"))

    def cpu(self):
        """Seconds of all its threads."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def show(self):
        return json.loads(self.run("sink", "show", "shop", "out", "--json"))


def header(message):
    lines = base64.b64decode(message.get("hdrs", "")).decode().split("\r\n")
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def published(port):
    """The messages of the stream in their order: the sequence, the header, the body."""
    client = Client(port)
    found = []
    try:
        info = client.ask(f"STREAM.INFO.{STREAM}")
        if "error" in info:
            return []
        number, last = info["state"]["first_seq"], info["state"]["last_seq"]
        while number <= last:
            answer = client.ask(f"STREAM.MSG.GET.{STREAM}", {"seq": number, "next_by_subj": "countersign.>"})
            if "error" in answer:
                break
            message = answer["message"]
            found.append((message["seq"], message["subject"], header(message), base64.b64decode(message.get("data", ""))))
            number = message["seq"] + 1
    finally:
        client.close()
    return found


def ids(messages):
    return [one[2]["Countersign-Message-Id"] for one in messages]


def count(port):
    client = Client(port)
    try:
        return client.ask(f"STREAM.INFO.{STREAM}").get("state", {}).get("messages", 0)
    finally:
        client.close()


def differences(wanted, found):
    missing, extra = len(set(wanted) - set(found)), len(found) - len(set(found))
    return f"{len(wanted)} stored, {len(found)} in the stream, {missing} missing, {extra} twice" + (
        "" if sorted(wanted) == sorted(found) and wanted == found else ", or out of order")
