"""Feeds a stream of a real nats-server while the gateway and the server are killed, and compares the stream with what is stored:
everything once and in the order of storing.

    scripts/stream-test.py --countersign PROGRAM --nats-server PROGRAM [--rounds N] [--own-mark] [--only kills|credentials]

A round stores events and kills the gateway (SIGKILL), the server, or both, at a random moment; after each fourth the stream's last
messages are deleted. Then the server loses what it had acknowledged, and is away while events are stored. `--own-mark` plants a
fault: before each start of the gateway the sink is moved to where the gateway's own side says it is, as if the mark were kept only
there. That must fail.

Exit status: 0 all was good, 1 otherwise.
"""
import argparse
import base64
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

STREAM = "EVENTS"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def check(what, holds, detail=""):
    if not holds:
        raise SystemExit(f"stream-test: {what}: {detail}")
    print(f"{what}: ok", flush=True)


def wait(what, holds, seconds=90):
    """Returns once `holds()` is true."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"stream-test: {what}: not within {seconds} s")
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

    def start(self):
        self.process = subprocess.Popen([self.program, "-c", self.config], stderr=open(f"{self.folder}/nats.log", "a"))
        wait("the server answers", self.answers)

    def answers(self):
        try:
            client = Client(self.port)
            client.ask("INFO")
            client.close()
            return True
        except (OSError, ValueError, IndexError):
            return False

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


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
            raise SystemExit(f"stream-test: the gateway does not start; see {self.folder}/log")

    def kill(self, how=signal.SIGKILL):
        if self.process:
            self.process.send_signal(how)
            self.process.wait(timeout=60)
            self.process.stdout.close()
            self.process = None

    def track(self, count):
        events = []
        for _ in range(count):
            self.count += 1
            events.append({"type": "track", "event": "Order", "userId": f"user-{self.count % 7}",
                           "messageId": f"m-{self.count}", "properties": {"total": 1.10}})
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


def plain(gateway, server):
    gateway.track(25)
    gateway.run("sink", "create", "shop", "out", f"nats://127.0.0.1:{server.port}", STREAM)
    wait("25 events are in the stream", lambda: count(server.port) == 25)
    gateway.track(1)
    wait("the next one is too", lambda: count(server.port) == 26)
    messages = published(server.port)
    check("each event is there once, in order", ids(messages) == gateway.stored(), ids(messages))
    _, subject, head, body = messages[0]
    check("the subject has app, type and user", subject.startswith("countersign.shop.track.") and len(subject.split(".")[3]) == 16, subject)
    check("the header has position, id and verdict",
          {"Countersign-Position", "Countersign-Message-Id", "Countersign-Verdict", "Countersign-Epoch", "Nats-Msg-Id"} <= set(head), head)
    database = sqlite3.connect(f"file:{gateway.data}/events.sqlite?mode=ro", uri=True)
    check("the body is the event's bytes", body.decode() == database.execute("SELECT body FROM event ORDER BY seq").fetchone()[0], body)
    wait("the sink says so", lambda: gateway.show()["lag_events"] == 0 and gateway.show()["stream_seq"] == 26)
    with urllib.request.urlopen(f"http://127.0.0.1:{gateway.port}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    check("so do the metrics", 'countersign_sink_lag_events{app="shop",sink="out"} 0' in text
          and 'countersign_sink_published_total{app="shop",sink="out"} 26' in text)


def kills(gateway, server, rounds, own_mark):
    tails = 0
    for number in range(rounds):
        if not gateway.process:
            if own_mark:
                own = gateway.show()["position"]
                gateway.run("sink", "seek", "shop", "out", *(["--position", own] if own else ["--from", "start"]))
            gateway.start()
        if not server.process:
            server.start()
        # More than one window, so that a kill meets messages under way.
        for _ in range(random.randrange(1, 4)):
            gateway.track(random.randrange(50, 900))
        time.sleep(random.random() * 0.4)
        what = number % 4
        if what != 1:
            gateway.kill()
        if what in (1, 2):
            server.kill()
        if what == 3:
            # The server still knows the ids of what is deleted here.
            client = Client(server.port)
            info = client.ask(f"STREAM.INFO.{STREAM}")
            last = info["state"]["last_seq"]
            for victim in range(max(1, last - random.randrange(1, 40)), last + 1):
                client.ask(f"STREAM.MSG.DELETE.{STREAM}", {"seq": victim})
            client.close()
            tails += 1
    if not server.process:
        server.start()
    if not gateway.process:
        gateway.start()
    gateway.track(1)
    stored = gateway.stored()
    wait("all is in the stream", lambda: count(server.port) >= len(stored) and gateway.show()["lag_events"] == 0, 180)
    found = ids(published(server.port))
    print(differences(stored, found))
    check(f"{rounds} rounds of kills, after {tails} of them the stream's end deleted: once and in order", stored == found,
          differences(stored, found))


def lost_files(gateway, server):
    """The server dies and its files are those of some time before: acknowledged messages are gone."""
    copy = f"{server.folder}/copy"
    server.kill()
    shutil.copytree(f"{server.folder}/js", copy)
    server.start()
    before = count(server.port)
    gateway.track(700)
    wait("700 more are in the stream", lambda: count(server.port) == before + 700)
    server.kill()
    shutil.rmtree(f"{server.folder}/js")
    shutil.move(copy, f"{server.folder}/js")
    server.start()
    began = time.monotonic()
    wait("they are fed again", lambda: count(server.port) == before + 700)
    took = time.monotonic() - began
    check(f"700 acknowledged messages that the server has lost are there again, {took:.1f} s after it is back",
          ids(published(server.port)) == gateway.stored(), differences(gateway.stored(), ids(published(server.port))))


def away(gateway, server):
    server.kill()
    gateway.track(900)
    started = gateway.memory()
    began = time.monotonic()
    for _ in range(60):
        gateway.track(900)
    took = time.monotonic() - began
    wait("the failure is shown", lambda: gateway.show()["state"] == "failing" and gateway.show()["error"] == "cannot_connect")
    grown = gateway.memory() - started
    check(f"54,000 events are stored while the stream is away ({took / 54_000 * 1e6:.0f} µs each with their client; memory +{grown} MB)", grown < 40)
    behind, wanted, used = gateway.show()["lag_events"], len(gateway.stored()), gateway.cpu()
    server.start()
    began = time.monotonic()
    wait("all is in the stream", lambda: count(server.port) == wanted, 180)
    took = time.monotonic() - began
    print(f"{behind} events are there {took:.1f} s after the server is back, its pause included; "
          f"{(gateway.cpu() - used) / behind * 1e6:.1f} µs of processor each in the gateway", flush=True)
    wait("the sink says that it works", lambda: gateway.show()["state"] == "active" and gateway.show()["lag_events"] == 0)
    check("they are there once and in order", ids(published(server.port)) == gateway.stored())


def credentials(program, server_program, folder):
    """TLS with a CA of its own, and an NKEY."""
    run = lambda *arguments: subprocess.run(arguments, check=True, capture_output=True, cwd=folder)
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=CA", "-keyout", "ca.key", "-out", "ca.pem")
    for name, alternative in [("good", "IP:127.0.0.1"), ("wrong", "DNS:elsewhere.example")]:
        run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        with open(f"{folder}/{name}.ext", "w") as file:
            file.write(f"subjectAltName={alternative}\n")
        run("openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", f"{name}.ext", "-out", f"{name}.pem")
    # An example of NATS' documentation.
    public, seed = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4", "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
    with open(f"{folder}/seed", "w") as file:
        file.write(seed)
    # The machine's authorities, for a sink that names none.
    os.environ["SSL_CERT_FILE"] = f"{folder}/ca.pem"
    authority = ["--stream-ca-file", f"{folder}/ca.pem"]
    for name, certificate, scheme, more, expected in [
        ("good", "good", "tls", authority, "active"), ("wrong", "wrong", "tls", authority, "tls"),
        ("refused", "good", "tls", authority, "refused"),
        # The server requires TLS, so the library changes to it.
        ("changed", "good", "nats", [], "active"), ("changed-wrong", "wrong", "nats", [], "tls"),
    ]:
        os.makedirs(f"{folder}/{name}")
        who = "user: a, password: b" if name == "refused" else f"nkey: {public}"
        server = Server(server_program, f"{folder}/{name}", False, f"""
            tls {{ cert_file: "{folder}/{certificate}.pem", key_file: "{folder}/{certificate}.key" }}
            authorization {{ users = [ {{ {who} }} ] }}
            """)
        server.process = subprocess.Popen([server_program, "-c", server.config], stderr=open(f"{folder}/{name}/nats.log", "a"))
        gateway = Gateway(program, f"{folder}/{name}")
        try:
            gateway.start()
            gateway.run("sink", "create", "shop", "out", f"{scheme}://127.0.0.1:{server.port}", STREAM, *more,
                        "--nkey", public, "--nkey-seed-file", f"{folder}/seed")
            gateway.track(5)
            if expected == "active":
                wait(f"{name}: events come over TLS with an NKEY", lambda: gateway.show()["stream_seq"] == 5)
            else:
                wait(f"{name}: the sink fails", lambda: gateway.show()["error"] is not None, 30)
                check(f"{name}: it says {expected}", gateway.show()["error"] == expected, gateway.show())
            gateway.kill(signal.SIGTERM)
            with open(f"{gateway.folder}/log") as file:
                check("no seed is in the log", seed not in file.read() and seed not in json.dumps(gateway.show()))
        finally:
            gateway.kill()
            server.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--countersign", required=True)
    parser.add_argument("--nats-server", required=True)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--own-mark", action="store_true")
    parser.add_argument("--only", choices=["kills", "credentials"])
    options = parser.parse_args()
    random.seed(options.seed)
    print(f"seed {options.seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="countersign-stream-")
    os.makedirs(f"{folder}/server")
    os.makedirs(f"{folder}/tls")
    server = Server(options.nats_server, f"{folder}/server", False)
    gateway = None
    try:
        if options.only != "credentials":
            server.start()
            gateway = Gateway(os.path.abspath(options.countersign), folder)
            gateway.start()
            plain(gateway, server)
            kills(gateway, server, options.rounds, options.own_mark)
            if options.only is None:
                lost_files(gateway, server)
                away(gateway, server)
                gateway.kill(signal.SIGTERM)
        if options.only != "kills":
            credentials(os.path.abspath(options.countersign), options.nats_server, f"{folder}/tls")
    finally:
        if gateway:
            gateway.kill()
        server.kill()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
