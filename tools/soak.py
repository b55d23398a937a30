"""Runs a gateway at half of its capacity for minutes or hours, and measures the growth of memory, descriptors, threads, files, CPU, latencies.

A thousand devices with tokens send to two apps. `shop` has two readers, a webhook and hourly files, and each must get each acknowledged
event. `brief` retains its last megabyte. Meanwhile keys are rotated, enforcement changes, backups are made, a tenth of the devices
refreshes its tokens, and dashboards are open. An interrupted run (SIGINT, SIGTERM) prints the same report.

The growth is the slope of a least-squares line over means of equal parts of the run, without its first tenth. Exit status: 1 if memory,
descriptors or threads grow by more than their bounds with 95 % confidence (in runs of 20 minutes and more), or if an event is missing.
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import statistics
import threading
import time
from collections import Counter, deque

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from .audit import ERRORS, Consumer, Follower, Tally, columns, lines, listed, token_of
from .common import DICE, parse, preloaded, until, workshop
from .gateway import Gateway
from .receiver import Receiver

DEVICES, WORKERS, DASHBOARDS, PERIOD, PARTS, SHORTEST = 1000, 24, 3, 5, 30, 20
# The highest growth in an hour. The memory of the index may grow too, by `INDEX` bytes an event (docs/reference/limits.md).
BOUNDS, INDEX = {"memory, MB": 16, "descriptors": 4, "threads": 2}, 2.3
ENVIRONMENT = {"COUNTERSIGN_TOKEN_REQUESTS_PER_SECOND": "0", "COUNTERSIGN_REQUESTS_PER_SECOND_PER_ADDRESS": "0"}


def counting(reader, tally):
    """A subclass of `reader` that adds events to a tally instead of storing them."""
    return type("Counting", (reader,), {"limit": 1000, "see": lambda _, events: tally.take(columns(events)) or []})


class Device:
    """A device that renews its token after a 401 or when it is due. One in ten refreshes it at the token service, every two minutes."""

    def __init__(self, soak, number):
        self.soak, self.user, self.app = soak, f"device-{number}", "brief" if number % 10 == 0 else "shop"
        self.headers, self.due, self.refresh, self.has_session = {}, 0, None, number % 10 == 1

    def renew(self):
        soak, now = self.soak, int(time.time())
        if self.has_session:
            self.refresh = self.refresh or soak.admin("POST", f"/apps/{self.app}/sessions", {"user": self.user})["refresh_token"]
            status, answer = soak.gateway.ask("POST", "/api/refresh_token", {"refresh_token": self.refresh})
            if status != 200:
                raise OSError(f"a refresh was answered {status}")
            soak.problems += ["a refresh returned the same refresh token"] * (answer["refreshToken"] == self.refresh)
            token, self.refresh, self.due = answer["accessToken"], answer["refreshToken"], time.monotonic() + 120
            soak.done["refreshes"] += 1
        else:
            claims = {"sub": self.user, "jti": token_of(self.user), "iat": now, "exp": now + 3600}
            token, self.due = jwt.encode(claims, soak.private, "RS256"), time.monotonic() + 1800
        self.headers["Authorization"] = f"Bearer {token}"

    def send(self, numbers):
        """Sends a batch until it is acknowledged."""
        soak, status = self.soak, None
        events = [{"type": "track", "event": "Soaked", "messageId": f"{self.user}/{number}", "userId": self.user,
                   "properties": {"text": "x" * DICE.randrange(100)}} for number in numbers]
        while not soak.abandons.is_set():
            try:
                if status == 401 or time.monotonic() > self.due:
                    self.renew()
                began = time.monotonic()
                status, answer = soak.gateway.batch(events, soak.write_keys[self.app], self.headers)
                soak.answers[status] += 1
                if status == 200 and not answer["rejected"]:
                    soak.latencies["batch"].append(time.monotonic() - began)
                    soak.done[f"events of {self.app}"] += len(numbers)
                    with soak.lock:
                        return [soak.acknowledged.mark(number) for number in numbers if self.app == "shop"]
            except ERRORS as error:
                soak.answers[str(error)] += 1
            time.sleep(0.01 if status == 401 else 0.5)


class Soak:
    def __init__(self, options):
        self.minutes, self.rate, self.folder = options.minutes, options.rate, workshop("countersign-soak-")
        flags = ("--event-files", self.folder / "files", "--backup-folder", self.folder / "backups")
        self.gateway = Gateway(options.countersign, self.folder, environment=ENVIRONMENT, flags=flags, level="error")
        self.problems, self.answers, self.done, self.samples, self.write_keys = [], Counter(), Counter(), [], {}
        self.latencies, self.lock, self.sent, self.key_ids = {"batch": [], "/livez": []}, threading.Lock(), 0, {"shop": [], "brief": []}
        # Once `abandons` is set, devices no longer repeat unacknowledged batches.
        self.stop, self.abandons, self.acknowledged = threading.Event(), threading.Event(), Tally("acknowledged")
        self.tallies = {name: Tally(name) for name in ("by position", "named", "webhook", "files", "stored")}

    def admin(self, method, path, body=None):
        status, answer = self.gateway.ask(method, "/admin/api" + path, body, {**self.owner, "If-Match": "*"}, timeout=300)
        if status not in (200, 201, 204):
            raise OSError(f"{method} {path}: {status} {answer['code']}")
        return answer

    def begin(self):
        gateway = self.gateway
        self.write_keys |= {app: gateway.app(app, enforcement="optional") for app in self.key_ids}
        gateway.run("app", "retention", "brief", "--bytes", 1_000_000, "--confirm", "brief")
        self.owner, reader = gateway.bearer(), gateway.bearer("reader", "reader", "shop")
        gateway.start()
        gateway.run("consumer", "create", "shop", "named")
        gateway.run("webhook", "create", "shop", Receiver(self.deliver).start().url, "--allow-private", "--from", "start")
        self.rotate()
        self.readers = [counting(kind, self.tallies[name])(name, [gateway], reader) for kind, name in ((Follower, "by position"), (Consumer, "named"))]
        self.devices = deque(Device(self, number) for number in range(DEVICES))
        for work in [self.probe, self.watch] + [self.follow] * DASHBOARDS:
            threading.Thread(target=self.repeat, args=(work,), daemon=True).start()

    def repeat(self, work):
        while not self.stop.is_set():
            try:
                work()
            except ERRORS as error:
                self.answers[f"{work.__name__}: {error}"] += 1
                self.stop.wait(1)

    def load(self, rate, seconds):
        """Starts threads that send `rate` batches a second, or fewer if the gateway is slower. Returns the threads."""
        due, end = [time.monotonic()], time.monotonic() + seconds

        def work():
            while not self.stop.is_set() and due[0] < end:
                with self.lock:
                    due[0] = max(due[0] + 1 / rate, time.monotonic() - 1)
                    begin, device, first = due[0], self.devices.popleft(), self.sent
                    self.sent += DICE.randint(1, 2)
                    numbers = range(first, self.sent)
                self.stop.wait(max(0, begin - time.monotonic()))
                device.send(numbers)
                self.devices.append(device)
        workers = [threading.Thread(target=work, daemon=True) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        return workers

    # MARK: Other work

    def deliver(self, _, body, headers):
        self.tallies["webhook"].take(columns(json.loads(body).get("events", [])))
        return 204

    def probe(self):
        began = time.monotonic()
        self.gateway.ask("GET", "/livez")
        self.latencies["/livez"].append(time.monotonic() - began)
        self.stop.wait(0.1)

    def watch(self):
        """Sends the requests of an open page of the dashboard."""
        for path in ("/overview", "/apps/shop/analytics", "/apps/shop/consumers"):
            self.admin("GET", path)
        self.stop.wait(5)

    def follow(self):
        """Reads the stream of live requests for a minute, as the dashboard does."""
        connection, end = http.client.HTTPConnection(self.gateway.host, self.gateway.port, timeout=30), time.monotonic() + 60
        connection.request("GET", "/admin/api/live?app=shop", headers=self.owner)
        answer = connection.getresponse()
        while time.monotonic() < end and not self.stop.is_set() and answer.readline():
            self.done["lines of dashboards"] += 1
        connection.close()

    def rotate(self):
        """Adds a primary key, which signs new tokens, and deletes the third-newest key."""
        private = rsa.generate_private_key(65537, 2048)
        public = private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
        for app, ids in self.key_ids.items():
            ids.append(self.admin("POST", f"/apps/{app}/keys", {"text": public})["id"])
            self.admin("PATCH", f"/apps/{app}/keys/{ids[-1]}", {"slot": "primary"})
            if len(ids) > 2:
                self.admin("DELETE", f"/apps/{app}/keys/{ids.pop(0)}")
        self.private = private
        self.done["key rotations"] += 1

    def enforce(self):
        state = "optional" if self.done["changes of enforcement"] % 2 else "required"
        self.gateway.run("enforcement", "set", "shop", state, "--yes")
        self.done["changes of enforcement"] += 1

    def back_up(self):
        self.admin("POST", "/backups")
        for old in sorted((self.folder / "backups").iterdir(), key=os.path.getmtime)[:-1]:
            shutil.rmtree(old)
        self.done["backups"] += 1

    # MARK: Measuring

    def used(self):
        """The gateway's CPU time in seconds, and the number of acknowledged events."""
        with open(f"/proc/{self.gateway.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), self.done["events of shop"] + self.done["events of brief"]

    def size(self):
        total = 0
        for path in self.gateway.data.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                total += path.stat().st_size
        return total

    def sample(self, since, before):
        now, after = time.monotonic(), self.used()
        latencies = {name: sorted(times.pop() for _ in range(len(times))) for name, times in self.latencies.items()}
        self.samples.append((now, {
            "memory, MB": self.gateway.memory(), "descriptors": len(os.listdir(f"/proc/{self.gateway.process.pid}/fd")),
            "threads": self.gateway.threads(), "CPU, % of a core": (after[0] - before[0]) / (now - since) * 100,
            "events a second": (after[1] - before[1]) / (now - since), "data directory, MB": self.size() / 1e6,
            "events not yet read": self.acknowledged.count - min(self.tallies[name].count for name in ("by position", "named", "webhook")),
            **{f"p99 of {name}, ms": times[len(times) * 99 // 100] * 1000 for name, times in latencies.items() if times}}))

    def run(self):
        self.begin()
        if not self.rate:
            cpu, count = self.used()[0], self.answers[200]
            for worker in self.load(10_000, 15):
                worker.join()
            most = (self.answers[200] - count) / 15
            self.rate = max(1, most / 2)
            print(f"at most {most:.0f} batches a second, the gateway at {(self.used()[0] - cpu) / 15 * 100:.0f} % of a core", flush=True)
        print(f"soak: {self.rate:.0f} batches a second for {self.minutes:g} minutes; files in {self.folder}", flush=True)
        began, turn, changes = time.monotonic(), 0, [self.rotate, self.enforce, self.back_up]
        since, before, workers = began, self.used(), self.load(self.rate, self.minutes * 60)
        while not self.stop.is_set() and any(worker.is_alive() for worker in workers):
            self.stop.wait(PERIOD)
            self.sample(since, before)
            since, before = self.samples[-1][0], self.used()
            if since - began > (turn + 1) * max(10, self.minutes):
                try:
                    changes[turn % len(changes)]()
                except (SystemExit, *ERRORS) as error:
                    self.problems.append(f"{changes[turn % len(changes)].__name__}: {error!r}")
                turn += 1
            if len(self.samples) % (60 // PERIOD) == 0:
                print(f"{(since - began) / 60:6.1f} min: " + "; ".join(f"{name} {value:.1f}" for name, value in self.samples[-1][1].items()), flush=True)
        self.stop.set()
        for worker in workers:
            worker.join(timeout=60)
        self.problems += ["events are not acknowledged"] * any(worker.is_alive() for worker in workers)
        self.abandons.set()

    def report(self):
        """Prints the growth of each measure. Returns the problems."""
        minutes = (self.samples[-1][0] - self.samples[0][0]) / 60 if self.samples else 0
        print(f"\n{minutes:.1f} minutes; answers {dict(self.answers)}; {dict(self.done)}")
        print(f"{'':22}{'first':>10}{'mean':>10}{'last':>10}   an hour, with 95 % confidence")
        problems, bounds = [], dict(BOUNDS)
        bounds["memory, MB"] += INDEX * (self.done["events of shop"] + self.done["events of brief"]) / max(minutes, 1) * 60 / 1e6
        for name in self.samples[-1][1] if len(self.samples) > 5 else ():
            points = parts([(at / 3600, values[name]) for at, values in self.samples[len(self.samples) // 10:] if name in values])
            if len(points) < 3:
                continue
            growth, margin = slope(points)
            bound = f"; at most {bounds[name]:.0f}" + "; too short to fail" * (minutes < SHORTEST) if name in bounds else ""
            problems += [f"{name}: the slope is above its bound"] * (minutes >= SHORTEST and growth - margin > bounds.get(name, float("inf")))
            print(f"{name:22}{points[0][1]:10.1f}{statistics.mean(value for _, value in points):10.1f}{points[-1][1]:10.1f}"
                  f"   {growth:+.2f} ± {margin:.2f}{bound}", flush=True)
        return problems

    def audit(self):
        """Compares the acknowledged, stored and read events. Returns the problems."""
        gateway, tallies, total, folder = self.gateway, self.tallies, self.acknowledged.count, self.folder / "files/shop"
        for reader in self.readers:
            reader.stop()
            self.problems += reader.problems[:3]
        until("the webhook", lambda: tallies["webhook"].count >= total, 300, pause=0.5)
        self.problems += ["the gateway ended with an error"] * (gateway.stop() != 0)
        for start in range(0, gateway.rows("SELECT max(seq) FROM event")[0][0] or 0, 100_000):
            tallies["stored"].take(gateway.history(after=start, through=start + 100_000))
        verified = gateway.rows("SELECT count(*) FROM event WHERE app_id = 'shop' AND verdict = 'verified'")[0][0]
        self.problems += [f"only {verified} events are verified"] * (verified < total / 10)
        # Starts with a clock that is an hour ahead, so that the gateway writes the files of the present hour.
        gateway.environment |= preloaded("wrong-clock", self.folder) | {"CLOCK_OFFSET": "3700"}
        gateway.start()
        until("the files", lambda: sum(entry["events"] for entry in listed(folder)) >= tallies["stored"].count, 600, pause=0.5)
        for entry in listed(folder):
            for line in lines(folder, entry):
                tallies["files"].take(columns([json.loads(line)]))
        print(f"\n{total} events of shop were acknowledged; " + ", ".join(f"{name} {tally.count}" for name, tally in tallies.items()), flush=True)
        return self.problems + [problem for tally in tallies.values() for problem in tally.problems(self.sent, self.acknowledged)]


def parts(points):
    """The means of at most `PARTS` equal parts of the samples, because neighbouring samples are not independent."""
    size = -(-len(points) // PARTS)
    return [tuple(map(statistics.mean, zip(*points[start:start + size]))) for start in range(0, len(points), size)]


def slope(points):
    """The slope of a least-squares line, and half the width of its 95 % confidence interval."""
    times, values = zip(*points)
    line, freedom = statistics.linear_regression(times, values), len(points) - 2
    variance = sum((value - line.intercept - line.slope * at) ** 2 for at, value in points) / freedom
    # The factor approximates Student's t within 2 % for 3 degrees of freedom and more.
    return line.slope, (1.96 + 2.4 / freedom + 3.6 / freedom ** 2) * (variance / statistics.pvariance(times) / len(points)) ** 0.5


def main(arguments):
    soak = Soak(parse(arguments, "soak", __doc__, minutes=120.0, rate=0.0))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: soak.stop.set())
    try:
        try:
            soak.run()
        finally:
            problems = soak.report()
        problems += soak.audit()
    finally:
        soak.abandons.set()
        soak.gateway.kill()
    print("".join(f"soak: {problem}\n" for problem in problems[:20]) + f"soak: {'BAD' if problems else 'good'}")
    if not problems:
        shutil.rmtree(soak.folder)
    return 1 if problems else 0
