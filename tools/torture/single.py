"""Scenarios with one gateway on SQLite: kills, power failures, failing and full disks, deletions, failing consumers."""

import os
import random
import shutil
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..audit import Consumer, Load, account, generations
from ..common import Skipped, on_linux, until
from ..gateway import Gateway
from .trial import UNLIMITED, Trial, exchange, integrity


class OtherProgram(threading.Thread):
    """Opens, reads and closes the databases in a loop, like another program that queries them with SQL."""

    def __init__(self, data):
        super().__init__(daemon=True)
        self.data, self.reads, self.stopping = data, 0, False
        self.start()

    def run(self):
        while not self.stopping:
            for path in Path(self.data).glob("*.sqlite"):
                try:
                    database = sqlite3.connect(path, timeout=5)
                    database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
                    database.close()
                    self.reads += path.name == "events.sqlite"
                except sqlite3.Error:
                    pass


def kill(options, rounds):
    """kill -9 under load, while another program reads the databases."""
    made = Trial(options, "kill")
    made.app()
    gateway, slowest, problems = made.gateway(), 0.0, []
    other = OtherProgram(gateway.data)
    made.begin()
    for _ in range(rounds):
        time.sleep(random.uniform(0.01, 0.25))
        gateway.kill()
        began = time.monotonic()
        gateway.start()
        slowest = max(slowest, time.monotonic() - began)
    made.load.stop()
    for reader in made.readers:
        reader.stop()
    if (code := gateway.stop()) != 0:
        problems.append(f"the last stop ended with {code}")
    other.stopping = True
    other.join()
    problems += ["no other program read the databases"] * (other.reads == 0)
    return made.end(f"{rounds} kills, {other.reads} reads by another program, slowest start {slowest:.2f} s", problems)


def relaxed(program, folder):
    """Copies the program so that a commit does not flush (`synchronous = 1`). The scenario must report lost events."""
    text = Path(program).read_bytes()
    if b"PRAGMA synchronous = FULL" not in text:
        raise SystemExit("power: the program does not contain `PRAGMA synchronous = FULL`, so the control cannot be made")
    changed = folder / "countersign-relaxed"
    changed.write_bytes(text.replace(b"PRAGMA synchronous = FULL", b"PRAGMA synchronous = 1   "))
    changed.chmod(0o700)
    return changed


class Outage:
    """A gateway that loses its power. Afterwards `data` has the content of a disk that lost all writes that were not flushed."""

    def __init__(self, made, number, program=None, environment=None, seconds=None, is_enough=lambda load: True):
        """The power fails after `seconds` (default random) and when `is_enough` is true, at most three seconds later."""
        folder = made.folder / str(number)
        folder.mkdir()
        self.gateway = Gateway(made.program, folder)
        key = self.gateway.app()
        made.tokens.require(self.gateway.run)
        self.data = self.gateway.data
        self.gateway.program = str(program or made.program)
        self.gateway.model_power()
        self.gateway.environment |= environment or {}
        self.gateway.launch()
        has_started = self.gateway.started()
        self.load = Load([self.gateway], key, users=made.tokens.headers) if has_started else None
        if has_started:
            time.sleep(seconds or random.uniform(0.05, 0.4))
            until = time.monotonic() + 3
            while not is_enough(self.load) and time.monotonic() < until:
                time.sleep(0.02)
        self.gateway.kill()
        if has_started:
            self.load.stop(abandon=True)

    def stored(self):
        # The power may fail before the first table is on disk.
        has_table = self.gateway.rows("SELECT 1 FROM sqlite_schema WHERE name = 'event'", mode="rwc")
        return self.gateway.history(mode="rwc") if has_table else []

    def lost(self):
        """The number of lost acknowledged events."""
        return len(self.load.acknowledged - {row[1:3] for row in self.stored()}) if self.load else 0

    def problems(self):
        """Checks the data that survived, and starts the program on it without the disk model. Returns the problems."""
        found = account(self.stored(), self.load, dense=True) if self.load and self.load.acknowledged else []
        found += integrity(self.data, self.load)
        self.gateway.environment.pop("LD_PRELOAD")
        self.gateway.launch()
        if not self.gateway.started() or self.gateway.stop() != 0:
            found.append(f"the gateway does not start and stop on {self.data}")
        return found

    @property
    def rejections(self):
        return self.load.answers[503] if self.load else 0


def power(options, rounds):
    """Power failures, and a control that does not flush and must lose events."""
    on_linux("the model of a power failure")
    made = Trial(options, "power")
    outages = [Outage(made, number) for number in range(rounds)]
    problems = [problem for outage in outages for problem in outage.problems()]
    program, lost = relaxed(options.countersign, made.folder), 0
    for number in range(10):
        lost += Outage(made, f"control-{number}", program, seconds=0.4).lost()
    acknowledged = sum(len(outage.load.acknowledged) for outage in outages if outage.load)
    problems += ["the control lost no event, so the test cannot detect losses"] * (not lost) + ["nothing was acknowledged"] * (not acknowledged)
    return made.verdict(f"{rounds} power failures, {acknowledged} events acknowledged; the control lost {lost}", problems)


def has_rejected(load):
    return load.answers[503] > 0


def has_recovered(load):
    return has_rejected(load) and load.last > load.rejected_at


def fsync(options, rounds):
    """fsync fails once, several times, or always after some call."""
    on_linux("the model of a failing disk")
    made = Trial(options, "fsync")
    # A start makes about 45 flushes. In fewer than 12 rounds, possibly no flush fails between the first event and the kill.
    rounds, outages, recovered = max(rounds, 12), [], 0
    for number in range(rounds):
        # One failed flush, several in succession, or all from some call on.
        failures = (1, random.randint(2, 20), 1 << 40)[number % 3]
        outage = Outage(made, number, seconds=0.4, environment={"PF_FAIL_AFTER": str(random.randint(5, 160)), "PF_FAIL_COUNT": str(failures)},
                        is_enough=has_recovered if failures == 1 else has_rejected)
        outages.append(outage)
        recovered += failures == 1 and outage.load is not None and has_recovered(outage.load)
    problems = [problem for outage in outages for problem in outage.problems()]
    rejecting = sum(outage.rejections > 0 for outage in outages)
    problems += ["no flush failed while events arrived"] * (not rejecting) + ["no gateway recovered from one failure"] * (not recovered)
    return made.verdict(f"{rounds} failing disks, {rejecting} answered 503, {recovered} recovered from one failure", problems)


def full(options, rounds):
    """The disk is full, and later has space again."""
    made = Trial(options, "full")
    disk = made.folder / "small"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs", str(disk)], capture_output=True).returncode:
        raise Skipped("no tmpfs can be mounted (it needs root)")
    problems, slowest, rejections, acknowledged = [], 0.0, 0, 0
    try:
        for number in range(rounds):
            folder = disk / str(number)
            folder.mkdir()
            gateway = Gateway(options.countersign, folder, flags=("--disk-floor-bytes", "0"))
            key = gateway.app()
            made.tokens.require(gateway.run)
            gateway.start()
            free, ballast = os.statvfs(disk), disk / "ballast"
            ballast.write_bytes(b"x" * max(0, free.f_bavail * free.f_frsize - random.randint(200_000, 1_500_000)))
            load = Load([gateway], key, padding=4_000, users=made.tokens.headers)
            until("full: a full disk", lambda: load.answers[503], 20)
            time.sleep(random.uniform(0, 0.2))
            ballast.unlink()
            freed = time.monotonic()
            slowest = max(slowest, until("full: an event after the disk has space", lambda: load.last > freed, 10))
            load.stop()
            rejections += load.answers[503]
            acknowledged += len(load.acknowledged)
            problems += [f"{load.answers[None]} requests got no answer"] * (load.answers[None] > 0)
            problems += ["the gateway did not stop"] * (gateway.stop() != 0) + integrity(gateway.data, load)
            problems += account(gateway.history(), load, dense=True)
            shutil.rmtree(folder)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)
    problems += ["a recovery took five seconds or more"] * (slowest >= 5)
    return made.verdict(f"{rounds} full disks, {rejections} answers 503, {acknowledged} events acknowledged, "
                        f"slowest recovery {slowest:.2f} s", problems)


def rows_of(gateway, app):
    """The number of rows of an app in each table with a column `app_id`, without tables that have no rows of the app."""
    found = Counter()
    for file in ("control", "events", "analytics", "tokens"):
        for (table,) in gateway.rows("SELECT m.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c "
                                     "WHERE m.type = 'table' AND c.name = 'app_id'", file=file):
            if table not in ("audit", "app_deletion"):
                found[table] = gateway.rows(f"SELECT count(*) FROM {table} WHERE app_id = ?", app, file=file)[0][0]
    return +found


def delete(options, rounds):
    """kill -9 of the gateway while an app is deleted, and of the command that deletes it."""
    made, problems, middle, whole = Trial(options, "delete"), [], 0, 0
    for number in range(rounds):
        folder = made.folder / str(number)
        folder.mkdir()
        gateway = Gateway(options.countersign, folder)
        keys = [gateway.app("shop"), gateway.app("kiosk")]
        for app in ("shop", "kiosk"):
            made.tokens.require(gateway.run, app)
        gateway.start()
        loads = [Load([gateway], key, padding=1_000, users=made.tokens.headers) for key in keys]
        time.sleep(1.5)

        def is_set(column):
            rows = gateway.rows(f"SELECT {column} FROM app_deletion WHERE app_id = 'shop'", file="control")
            return bool(rows) and rows[0][0] is not None

        command = subprocess.Popen([options.countersign, "app", "delete", "shop", "--confirm", "shop", "--data", str(gateway.data)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if number % 2:
            time.sleep(random.uniform(0.02, 0.25))
            command.kill()
        command.wait()
        if not number % 2:
            # Within a second the gateway sets free_ms, until which the id is reserved, and then starts to delete rows.
            until("delete: the deletion", lambda: is_set("free_ms"), 10)
        time.sleep(random.uniform(0, 0.03))
        gateway.kill()
        for load in loads:
            load.stop(abandon=True)
        is_whole = bool(gateway.rows("SELECT 1 FROM app WHERE id = 'shop'", file="control", mode="rwc"))
        whole += is_whole
        middle += not is_whole and not is_set("erased_ms") and "event" in rows_of(gateway, "shop")
        gateway.start()
        status = gateway.batch([{"type": "track", "event": "Late", "messageId": "late", "anonymousId": "u"}], keys[0])[0]
        if status != (200 if is_whole else 401):
            problems.append(f"round {number}: the app is {'whole' if is_whole else 'gone'}, an event was answered {status}")
        if is_whole:
            gateway.run("app", "delete", "shop", "--confirm", "shop")
        until("delete: the end of the deletion", lambda: is_set("erased_ms"), 60)
        left = rows_of(gateway, "shop")
        problems += [f"round {number}: rows of the deleted app remain: {left}"] * bool(left)
        problems += [f"round {number}: the gateway did not stop"] * (gateway.stop() != 0)
        problems += account(gateway.history("kiosk"), loads[1])
        problems += integrity(gateway.data)
    return made.verdict(f"{rounds} deletions, {middle} killed while rows were deleted, {whole} before the deletion began", problems)


def consumers(options, rounds):
    """Consumers with workers that die, are slow or acknowledge a part of a lease, a seek backwards, and kill -9 of the gateway."""
    return all([consume(options) for _ in range(rounds)])


def outages(options, rounds):
    """As `consumers`, with power failures instead of kill -9."""
    on_linux("the model of a power failure")
    return all([consume(options, fails_power=True) for _ in range(rounds)])


def consume(options, seconds=15, fails_power=False):
    made, kills = Trial(options, "consumers"), 0
    made.app()
    gateway = made.gateway()
    for name, partitions in (("one", 1), ("two", 4), ("back", 1)):
        made.command("consumer", "create", "shop", name, "--partitions", partitions)
    if fails_power:
        gateway.stop()
        gateway.model_power()
        gateway.start()
    made.load = Load(made.gateways, made.key, threads=3, users=made.tokens.headers)
    made.readers = [Consumer(name, made.gateways, made.reader, workers, partitions, hostile=True)
                    for name, workers, partitions in (("one", 1, 1), ("two", 2, 4), ("back", 1, 1))]
    end, back = time.monotonic() + seconds, made.readers[-1]
    while time.monotonic() < end:
        time.sleep(random.uniform(0.3, 1.2))
        gateway.kill()
        gateway.start()
        kills += 1
        if not back.last_seek and time.monotonic() > end - seconds / 2:
            back.seek()
    return made.end(f"{kills} {'power failures' if fails_power else 'kills'} of the gateway, {'moved back' if back.last_seek else 'not moved back'}")


def refresh(options, rounds):
    """Many exchanges of one refresh token at once, and kill -9 of the gateway: each generation has one new token."""
    made = Trial(options, "refresh")
    made.app()
    made.gateway(environment=UNLIMITED)
    return made.rotate(rounds)


def storm(options, rounds):
    """All sessions refresh at once, twice each: one new token for each session, and no failure. `--rounds` is the number of sessions."""
    made = Trial(options, "storm")
    made.app()
    gateway = made.gateway(environment=UNLIMITED)
    tokens = [gateway.ask("POST", "/admin/api/apps/shop/sessions", {"user": f"user-{number}"}, made.admin)[1]["refresh_token"]
              for number in range(rounds)]
    began = time.monotonic()
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda token: exchange(gateway, token), tokens + tokens))
    seconds = time.monotonic() - began
    statuses = Counter(status for status, _ in answers)
    problems = [f"answers {dict(statuses)}"] * (set(statuses) != {200})
    problems += generations([(token, *answer) for token, answer in zip(tokens + tokens, answers)])
    return made.verdict(f"{rounds} sessions refreshed twice in {seconds:.1f} s", problems)
