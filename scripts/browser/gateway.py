"""A real gateway on a free port, what sends to it, and a wire that can be cut."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Gateway:
    """A gateway with the app `shop`, its write key and three key pairs."""

    def __init__(self, program, database=None, beside=None):
        """Keeps all in a folder of its own, or in a PostgreSQL database; `beside` another gateway it shares that one's."""
        self.program = os.path.abspath(program)
        self.folder = tempfile.mkdtemp(prefix="countersign-browser-")
        self.environment = {**os.environ, "COUNTERSIGN_DATA": os.path.join(self.folder, "data")}
        if database:
            self.environment |= {"COUNTERSIGN_DATABASE": database, "COUNTERSIGN_TOKEN_KEY_FILE": self.path("token-key")}
        if beside:
            self.environment |= {name: beside.environment[name] for name in ("COUNTERSIGN_DATABASE", "COUNTERSIGN_TOKEN_KEY_FILE")}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.write_key = beside.write_key if beside else self.run("app", "create", "shop")
        for name in ("good", "other", "next"):
            os.mkdir(self.path(name))
            self.run("key", "generate", "--out", self.path(name))
        self.start()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def read(self, *parts):
        with open(self.path(*parts)) as file:
            return file.read()

    def run(self, *arguments, through=()):
        return subprocess.run([*through, self.program, *arguments], env=self.environment, check=True, timeout=60,
                              capture_output=True, text=True).stdout.strip()

    def start(self, through=()):
        """Starts it, through another program where one is given, and waits until it is ready."""
        with open(self.path("serve.log"), "a") as log:
            self.process = subprocess.Popen([*through, self.program, "serve", "--port", str(self.port)], env=self.environment,
                                            stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                    if answer.status == 200:
                        return
            time.sleep(0.05)
        raise AssertionError("the gateway did not become ready:\n" + self.read("serve.log"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def complaints(self):
        lines = self.read("serve.log").splitlines()
        loud = [line for line in lines[:-10] if re.search(r'"level":"(warning|error)"|"status":5', line)]
        return "\n".join(loud[-20:] + lines[-10:])

    def link(self):
        """The one-time link that `serve` printed before it was ready."""
        found = re.search(r"https?://\S+/admin/#/setup/[\w.-]+", self.read("serve.log"))
        assert found, "the gateway printed no one-time link:\n" + self.read("serve.log")
        return found.group(0)

    def token(self, user, key="good", *more):
        return self.run("token", "create", "--key", self.path(key, "private.pem"), "--user", user, *more)

    def send(self, user, token=None, name="Order Completed", version="5.2.0", key=None):
        """One event; the status of the answer."""
        event = {"type": "track", "messageId": f"{time.time_ns()}", "event": name, "context": {"app": {"version": version}}}
        event["anonymousId" if user is None else "userId"] = user or "device-1"
        headers = {"X-Write-Key": key or self.write_key, "Content-Type": "application/json",
                   "User-Agent": "countersign-swift/1.4.0"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(f"{self.url}/v1/batch", json.dumps({"batch": [event]}).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def trigger(self, verdict):
        """A request that ends so, or one of each kind with `all`; the codes that they ended in."""
        lines = [json.loads(line) for line in self.run("trigger", verdict, "--keep", "--json").splitlines()]
        assert all(line["as_wanted"] for line in lines), lines
        return [(line["code"], line["reason"]) for line in lines if line["code"] is not None]


class Wire:
    """A TCP relay before the gateway that can be cut: open connections end, new ones are refused until it is mended."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.open = set()
        self.whole = True
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = self.reach()
                if not far:
                    near.close()
                    continue
                self.open |= {near, far}
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self.relay, args=(one, other), daemon=True).start()

    def reach(self):
        """A connection to the gateway; None when the wire is cut or the gateway is down."""
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", self.target)) if self.whole else None

    def relay(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        self.end(one, other)

    def end(self, *ends):
        for each in ends:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            self.open.discard(each)

    def cut(self):
        self.whole = False
        self.end(*list(self.open))

    def mend(self):
        self.whole = True
