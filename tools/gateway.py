"""A gateway in another process: starts it, sends requests and commands, kills it, and reads its stored events."""

import http.client
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
import uuid
from pathlib import Path

from .common import DICE, free_port, preloaded, workshop

KEYS = ("good", "other", "next")
# The columns of a stored event that audit.py compares.
COLUMNS = ("seq", "user_id", "message_id", "verdict", "token_id")


def storage(folder, database=None):
    """The environment variables for the data directory in a folder, or for a database."""
    found = {"COUNTERSIGN_DATA": str(folder / "data")}
    if database:
        found["COUNTERSIGN_DATABASE"] = database
    password = folder / "database-password"
    return {**found, "COUNTERSIGN_DATABASE_PASSWORD_FILE": str(password)} if password.exists() else found


def command(program, environment, *arguments, through=()):
    """Runs `countersign` with arguments and returns its output. Exits if it fails."""
    done = subprocess.run([*through, program, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"countersign {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout.strip()


def request(target, method, path, body=None, headers=None, timeout=15):
    """Sends a request to the host and port of `target`. Returns status and JSON. Without a response raises OSError or HTTPException."""
    connection = http.client.HTTPConnection(target.host, target.port, timeout=timeout)
    try:
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        data = answer.read()
        try:
            return answer.status, json.loads(data or b"{}")
        except ValueError:
            return answer.status, data.decode()
    finally:
        connection.close()


def message_id():
    """A UUIDv7, as the SDK makes it. One in five is random hexadecimal text without a time, like ids of other clients."""
    if DICE.random() < 0.2:
        return f"{DICE.getrandbits(96):024x}"
    value = (int(time.time() * 1000) << 80) | (7 << 76) | (DICE.getrandbits(12) << 64) | (2 << 62) | DICE.getrandbits(62)
    return str(uuid.UUID(int=value))


class Gateway:
    """`countersign serve` on a data directory or a database. A restarted gateway has the same port."""

    def __init__(self, program, folder=None, name="gateway", *, database=None, environment=None, flags=(), prefix=(),
                 host="127.0.0.1", level="warning", files=None):
        """`prefix` is a command that runs the program, such as `ip netns exec`; `files` is the limit of open files."""
        self.program, self.name, self.host, self.port = os.path.abspath(program), name, host, free_port()
        self.folder = Path(folder) if folder else workshop()
        self.log, self.url = self.folder / f"{name}.log", f"http://{host}:{self.port}"
        self.flags, self.prefix, self.files = ("--log-level", level, *map(str, flags)), tuple(prefix), files
        self.environment = {**storage(self.folder, database), **(environment or {})}
        self.data = Path(self.environment["COUNTERSIGN_DATA"])
        self.process, self.key, self.count, self.disk = None, None, 0, None
        # audit.py reads these attributes as it reads those in `Load`. They have the events that `track` sends.
        self.users, self.sent = None, set()
        self.acknowledged = self.sent

    # MARK: The process

    def launch(self, through=()):
        """Starts the process without waiting."""
        limit = self.files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (self.files, self.files)))
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [*through, *self.prefix, self.program, "serve", "--host", self.host, "--port", str(self.port), *self.flags],
                stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **self.environment}, preexec_fn=limit)

    def started(self):
        """Waits until the process listens or has ended. Returns whether it listens."""
        return bool(self.process.stdout.readline().strip())

    def start(self, through=()):
        self.launch(through)
        if not self.started():
            raise SystemExit(f"the gateway does not start; see {self.log}")
        return self

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def end(self, how):
        if self.process is None:
            return None
        self.process.send_signal(how)
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        self.process = None
        return code

    def model_power(self, disk=None):
        """Makes `kill` a power failure: the folder `disk` (default: the data directory) loses unflushed writes."""
        self.disk, self.image = disk or self.data, self.folder / "image"
        shutil.copytree(self.disk, self.image)
        self.environment |= preloaded("powerfail", self.folder) | {"PF_DIR": str(self.disk), "PF_IMG": str(self.image)}

    def kill(self):
        code = self.end(signal.SIGKILL)
        if self.disk and code is not None:
            shutil.rmtree(self.disk)
            # powerfail.c writes a copy to NAME.pfPID and renames it, so a file of that name is incomplete.
            shutil.copytree(self.image, self.disk, ignore=shutil.ignore_patterns("*.pf[0-9]*"))
            self.disk.chmod(0o700)
        return code

    def stop(self):
        return self.end(signal.SIGTERM)

    def remove(self):
        """Kills the process and deletes its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def memory(self, name="VmRSS"):
        """The process's memory in MB: VmRSS is the present size, VmHWM the peak."""
        found = re.search(rf"^{name}:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text(), re.M)
        return int(found[1]) / 1000

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    # MARK: The command line

    def run(self, *arguments, through=()):
        return command(self.program, self.environment, *arguments, through=through)

    def app(self, name="shop", enforcement=None):
        """Creates an app and returns its write key."""
        key = self.run("app", "create", name)
        self.key = self.key or key
        if enforcement:
            self.run("enforcement", "set", name, enforcement, "--yes")
        return key

    def bearer(self, name="owner", scopes="admin", app=None):
        """Creates an API token and returns its Authorization header."""
        token = self.run("admin", "token", "create", "--name", name, "--scopes", scopes, *(["--app", app] if app else []))
        return {"Authorization": f"Bearer {token}"}

    def path(self, *parts):
        return str(self.folder.joinpath(*parts))

    def read(self, *parts):
        return self.folder.joinpath(*parts).read_text()

    def pairs(self, *names):
        """Generates key pairs in folders of these names."""
        for name in names:
            os.mkdir(self.path(name))
            self.run("key", "generate", "--out", self.path(name))
        return self

    def token(self, user, pair="good", *more):
        return self.run("token", "create", "--key", self.path(pair, "private.pem"), "--user", user, *more)

    # MARK: Requests

    def ask(self, method, path, body=None, headers=None, timeout=15):
        return request(self, method, path, body, headers, timeout)

    def metrics(self):
        return self.ask("GET", "/metrics")[1]

    def batch(self, events, key=None, headers=None, **more):
        """Sends events in one request. Returns the status and the JSON of the response."""
        return self.ask("POST", "/v1/batch", {"batch": events}, {"X-Write-Key": key or self.key, **(headers or {})}, **more)

    def track(self, count, note=""):
        """Sends `count` events in one request, which must succeed. `note` is a text in each event."""
        events = []
        for _ in range(count):
            self.count += 1
            events.append({"type": "track", "event": "Order", "userId": f"user-{self.count % 7}",
                           "messageId": f"m-{self.count}", "properties": {"total": 1.10} | ({"note": note} if note else {})})
        status, answer = self.batch(events, timeout=30)
        assert status == 200, answer
        self.acknowledged.update((event["userId"], event["messageId"]) for event in events)

    # MARK: Stored events

    def rows(self, query, *values, file="events", mode="ro"):
        database = sqlite3.connect(f"file:{self.data}/{file}.sqlite?mode={mode}", uri=True, timeout=30)
        try:
            return database.execute(query, values).fetchall()
        finally:
            database.close()

    def history(self, app="shop", after=0, through=1 << 62, **more):
        """The events of an app in the order of storing, as `COLUMNS`."""
        return self.rows(f"SELECT {', '.join(COLUMNS)} FROM event WHERE app_id = ? AND seq > ? AND seq <= ? ORDER BY seq", app, after, through, **more)

    def stored(self):
        """The message ids in the order of storing."""
        return [row[2] for row in self.history()]


class Shop(Gateway):
    """A running gateway with the app `shop`, its write key and three key pairs."""

    def __init__(self, program, database=None, beside=None):
        """Uses a data directory, a database, or the database of another gateway (`beside`)."""
        super().__init__(program, database=database, level="info")
        if database:
            self.environment["COUNTERSIGN_TOKEN_KEY_FILE"] = self.path("token-key")
        if beside:
            self.environment |= {name: value for name, value in beside.environment.items() if name != "COUNTERSIGN_DATA"}
        self.write_key = beside.write_key if beside else self.app()
        self.pairs(*KEYS).start()

    def complaints(self):
        """The last 20 warnings, errors and responses of 500 and above, and the last 10 lines of the log."""
        lines = self.log.read_text().splitlines()
        loud = [line for line in lines[:-10] if re.search(r'"level":"(warning|error)"|"status":5', line)]
        return "\n".join(loud[-20:] + lines[-10:])

    def link(self):
        """The one-time link for the first owner, which `serve` has printed."""
        found = re.search(r"https?://\S+/admin/#/setup/[\w.-]+", self.log.read_text())
        assert found, "the gateway printed no one-time link:\n" + self.log.read_text()
        return found.group(0)

    def send(self, user, token=None, name="Order Completed", version="5.2.0", key=None):
        """Sends one event; returns the status."""
        event = {"type": "track", "messageId": f"{time.time_ns()}", "event": name, "context": {"app": {"version": version}}}
        event["anonymousId" if user is None else "userId"] = user or "device-1"
        headers = {"X-Write-Key": key or self.write_key, "User-Agent": "countersign-swift/1.4.0"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return self.ask("POST", "/v1/batch", {"batch": [event]}, headers, timeout=20)[0]

    def trigger(self, verdict):
        """Runs `countersign trigger` with a code or `all`. Returns the rejections as (code, reason)."""
        lines = [json.loads(line) for line in self.run("trigger", verdict, "--keep", "--json").splitlines()]
        assert all(line["as_wanted"] for line in lines), lines
        return [(line["code"], line["reason"]) for line in lines if line["code"] is not None]
