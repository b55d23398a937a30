#!/usr/bin/env python3
"""Kills the gateway, its power, its fsync and its disk under load, and counts what is left.

Usage: scripts/torture-gateway.py [D2|D4|D5|D6|D7|all] [--rounds N] [--countersign PATH]

Each event that the gateway has acknowledged stands in a journal outside the system under test. In the end each of them must
be in the database, once. The rows are those of the project's reliability plan:

  D2  kill -9 under load, the client sends again what was not acknowledged; another program opens and closes the databases
      throughout, like one that reads events with SQL
  D4  power failure (powerfail.c, beside the package or named by POWERFAIL: what was not synced is gone), and a control that must lose some: the same
      gateway with synchronous=NORMAL
  D5  fsync fails once, or from some call on
  D6  the disk is full, and has room again
  D7  kill -9 of the gateway while an app is deleted and of the command that deletes it: the app is whole, or nothing is
      accepted for it and nothing of it is left in the end; another app loses nothing

Exit status: 0 nothing acknowledged was lost and nothing came twice, 1 otherwise, 2 it could not be tried.
"""

import argparse
import base64
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
THREADS = 4


class Journal:
    """What the gateway has acknowledged, as a file that no process under test can reach."""

    def __init__(self, path):
        self.file = open(path, "a", buffering=1)
        self.lock = threading.Lock()
        self.acknowledged = set()
        self.sent = set()

    def send(self, ids):
        with self.lock:
            self.sent.update(ids)

    def acknowledge(self, ids):
        with self.lock:
            self.acknowledged.update(ids)
            self.file.write("".join(identifier + "\n" for identifier in ids))


class Gateway:
    """A gateway process on a data directory."""

    def __init__(self, program, data, log, environment=None, flags=()):
        self.log = open(log, "a")
        started = time.monotonic()
        self.process = subprocess.Popen(
            [program, "serve", "--data", str(data), "--port", "0", "--log-level", "off", *flags],
            stdout=subprocess.PIPE, stderr=self.log, text=True, env={**os.environ, **(environment or {})})
        line = self.process.stdout.readline().strip()
        self.seconds = time.monotonic() - started
        self.port = int(line.rsplit(":", 1)[1]) if line else None

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        self.log.close()
        return code


class Load:
    """Clients that send batches of one to four events until they are stopped."""

    def __init__(self, gateway, key, journal, unsettled, padding=0):
        self.gateway, self.key, self.journal, self.padding = gateway, key, journal, padding
        self.unsettled = unsettled
        self.refused = threading.Event()
        self.stored_after_refusal = threading.Event()
        self.answers = {}
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        connection = None
        authorization = "Basic " + base64.b64encode(f"{self.key}:".encode()).decode()
        while not self.stopping.is_set():
            with self.lock:
                ids = self.unsettled.pop() if self.unsettled else None
            ids = ids or [f"{random.getrandbits(96):024x}" for _ in range(random.randint(1, 4))]
            self.journal.send(ids)
            events = [{"type": "track", "event": "Tortured", "messageId": identifier, "userId": "u",
                       "properties": {"padding": "x" * self.padding}} for identifier in ids]
            status = None
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=10)
                connection.request("POST", "/v1/batch", json.dumps({"batch": events}),
                                   {"Authorization": authorization})
                answer = connection.getresponse()
                body = answer.read()
                status = answer.status
                if status == 200 and not json.loads(body)["rejected"]:
                    self.journal.acknowledge(ids)
            except (OSError, http.client.HTTPException, ValueError):
                connection = None
            with self.lock:
                self.answers[status] = self.answers.get(status, 0) + 1
                if status != 200:
                    self.unsettled.append(ids)
            if status is None:
                time.sleep(0.005)
            elif status == 200:
                if self.refused.is_set():
                    self.stored_after_refusal.set()
            else:
                self.refused.set()
                time.sleep(0.01)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=30)


class Workshop:
    """Folders, programs and the account of one run."""

    def __init__(self, program):
        self.folder = Path(tempfile.mkdtemp(prefix="countersign-torture-"))
        self.program = program
        self.log = self.folder / "gateway.log"

    def data(self, name, parent=None):
        """A data directory with one app; returns it with the app's write key."""
        data = (parent or self.folder) / name
        made = subprocess.run([self.program, "app", "create", "shop", "--data", str(data)], check=True,
                              capture_output=True, text=True)
        return data, made.stdout.strip()

    def journal(self, name):
        return Journal(self.folder / f"{name}.journal")

    def powerfail(self):
        library = self.folder / "powerfail.so"
        source = Path(os.environ.get("POWERFAIL", SCRIPTS.parent.parent / "shared/tools/powerfail.c"))
        if not source.exists():
            raise SystemExit(f"torture: {source} is missing; name the model of the disk with POWERFAIL=path")
        if not library.exists():
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        return library


def account(data, journal):
    """Compares the database with the journal; returns (lost, twice, strange, problems)."""
    database = sqlite3.connect(f"file:{data}/events.sqlite?mode=rwc", uri=True)
    check = database.execute("PRAGMA integrity_check").fetchone()[0]
    # What the power failure of the control leaves may lack even the tables.
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_schema")}
    rows, usage = [], 0
    if "app_usage" in tables:
        rows = [row[0] for row in database.execute("SELECT message_id FROM event")]
        usage = database.execute("SELECT coalesce(sum(events), 0) FROM app_usage").fetchone()[0]
    if "counted" in tables:
        # Counts are written once a second; the next start adds what came after.
        usage += database.execute("SELECT count(*) FROM event WHERE seq > (SELECT seq FROM counted)").fetchone()[0]
    database.close()
    stored = set(rows)
    problems = [] if check == "ok" else [f"integrity_check says {check}"]
    if usage != len(rows):
        problems.append(f"app_usage counts {usage} of {len(rows)} events")
    return len(journal.acknowledged - stored), len(rows) - len(stored), len(stored - journal.sent), problems


def verdict(name, said, data_and_journals):
    lost = twice = strange = acknowledged = 0
    problems = []
    for data, journal in data_and_journals:
        more = account(data, journal)
        lost, twice, strange = lost + more[0], twice + more[1], strange + more[2]
        problems += more[3]
        acknowledged += len(journal.acknowledged)
    good = not (lost or twice or strange or problems) and acknowledged > 0
    print(f"{name}: {said}; {acknowledged} events acknowledged, {lost} lost, {twice} twice, {strange} never sent"
          + "".join(f"; {problem}" for problem in problems) + (": good" if good else ": BAD"), flush=True)
    return good


READER = """
import pathlib, sqlite3, sys
while True:
    for path in pathlib.Path(sys.argv[1]).glob("*.sqlite"):
        try:
            database = sqlite3.connect(path, timeout=5)
            database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            database.close()
            if path.name == "events.sqlite":
                print("read", flush=True)
        except sqlite3.Error:
            pass
"""


def also(name, good, checks):
    """The verdict with whatever else must hold; says what does not."""
    for what, holds in checks.items():
        if not holds:
            print(f"{name}: {what}: BAD", flush=True)
    return good and all(checks.values())


def killed(shop, rounds):
    data, key = shop.data("d2")
    journal, unsettled, slowest = shop.journal("d2"), [], 0.0
    reads = shop.folder / "d2.reads"
    with open(reads, "w") as said:
        reader = subprocess.Popen([sys.executable, "-c", READER, data], stdout=said)
    try:
        for _ in range(rounds):
            gateway = Gateway(shop.program, data, shop.log)
            slowest = max(slowest, gateway.seconds)
            load = Load(gateway, key, journal, unsettled)
            time.sleep(random.uniform(0.01, 0.25))
            gateway.kill()
            load.stop()
    finally:
        reader.kill()
        reader.wait()
    gateway = Gateway(shop.program, data, shop.log)
    load = Load(gateway, key, journal, unsettled)
    deadline = time.monotonic() + 30
    while unsettled and time.monotonic() < deadline:
        time.sleep(0.05)
    load.stop()
    code = gateway.stop()
    looks = len(reads.read_text().splitlines())
    good = verdict("D2", f"{rounds} kills, {looks} rounds of another program through the databases, slowest start {slowest:.2f} s, graceful stop {code}", [(data, journal)])
    return also("D2", good, {"no other program read the databases": looks > 0, "a start took two seconds or more": slowest < 2,
                             "the last stop failed": code == 0})


def relaxed(shop):
    """The same gateway, told to leave the log unsynced at a commit: what the model must be able to catch."""
    text = Path(shop.program).read_bytes()
    if b"PRAGMA synchronous = FULL" not in text:
        raise SystemExit("torture: the gateway does not say how it syncs; the control cannot be made")
    program = shop.folder / "countersign-relaxed"
    program.write_bytes(text.replace(b"PRAGMA synchronous = FULL", b"PRAGMA synchronous = 1   "))
    program.chmod(0o700)
    return str(program)


def power_round(shop, name, program, environment=None, seconds=None):
    data, key = shop.data(name)
    image = shop.folder / f"{name}-image"
    shutil.copytree(data, image)
    journal = shop.journal(name)
    gateway = Gateway(program, data, shop.log, {
        "LD_PRELOAD": str(shop.powerfail()), "PF_DIR": str(data), "PF_IMG": str(image), **(environment or {})})
    load = None
    if gateway.port:
        load = Load(gateway, key, journal, [])
        time.sleep(seconds or random.uniform(0.05, 0.4))
    gateway.kill()
    if load:
        load.stop()
    shutil.rmtree(data)
    os.chmod(image, 0o700)
    return image, journal, load


def restart(shop, image):
    """Starts on what the disk kept, as an operator would; returns True when it serves and stops well."""
    gateway = Gateway(shop.program, image, shop.log)
    return gateway.port is not None and gateway.stop() == 0


def power(shop, rounds):
    results = [power_round(shop, f"d4-{number}", shop.program) for number in range(rounds)]
    starts = all(restart(shop, image) for image, _, _ in results)
    lost = 0
    relaxed_program = relaxed(shop)
    for number in range(10):
        image, journal, _ = power_round(shop, f"d4-control-{number}", relaxed_program, seconds=0.4)
        lost += account(image, journal)[0]
    good = verdict("D4", f"{rounds} power failures, control (synchronous=NORMAL) lost {lost}",
                   [(image, journal) for image, journal, _ in results])
    if not lost:
        print("D4: the control lost nothing, so the test is blind: BAD")
    return good and starts and lost > 0


def fsync(shop, rounds):
    # Of fewer, none may fail between the first event and the kill.
    rounds = max(rounds, 12)
    results, recovered, refused = [], 0, 0
    for number in range(rounds):
        mode = "once" if number % 2 else "always"
        result = power_round(
            shop, f"d5-{number}", shop.program, seconds=0.8,
            environment={"PF_FAIL_AFTER": str(random.randint(5, 80)), "PF_FAIL_MODE": mode})
        results.append(result)
        load = result[2]
        if load and load.refused.is_set():
            refused += 1
            recovered += mode == "once" and load.stored_after_refusal.is_set()
    starts = all(restart(shop, image) for image, _, _ in results)
    good = verdict("D5", f"{rounds} failing disks, {refused} answered 503, {recovered} went on after one failure",
                   [(image, journal) for image, journal, _ in results])
    return also("D5", good, {"a start on what was left failed": starts, "no disk failed while events came": refused > 0,
                             "none went on after one failure": recovered > 0})


def rows_of(data, app):
    """How many rows of an app each table has, of all that say whose their rows are."""
    found = {}
    for name in ("control", "events", "analytics", "tokens"):
        with sqlite3.connect(f"file:{data}/{name}.sqlite?mode=ro", uri=True, timeout=30) as database:
            tables = [row[0] for row in database.execute(
                "SELECT m.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND c.name = 'app_id'")]
            for table in tables:
                if table not in ("audit", "app_deletion"):
                    count = database.execute(f"SELECT count(*) FROM {table} WHERE app_id = ?", (app,)).fetchone()[0]
                    if count:
                        found[table] = count
    return found


def post(gateway, key):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=10)
    connection.request("POST", "/v1/batch", json.dumps({"batch": [
        {"type": "track", "event": "Late", "messageId": f"{random.getrandbits(96):024x}", "userId": "u"}]}), {"X-Write-Key": key})
    return connection.getresponse().status


def noted(data, column):
    """Whether the deletion has come so far."""
    with sqlite3.connect(f"file:{data}/control.sqlite?mode=ro", uri=True, timeout=30) as database:
        row = database.execute(f"SELECT {column} FROM app_deletion WHERE app_id = 'shop'").fetchone()
        return row is not None and row[0] is not None


def wait_until(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)


def deleted(shop, rounds):
    good, middle, whole, kept = True, 0, 0, []
    for number in range(rounds):
        data, key = shop.data(f"d7-{number}")
        other = subprocess.run([shop.program, "app", "create", "kiosk", "--data", str(data)], check=True,
                               capture_output=True, text=True).stdout.strip()
        journals = [shop.journal(f"d7-{number}-shop"), shop.journal(f"d7-{number}-kiosk")]
        gateway = Gateway(shop.program, data, shop.log)
        loads = [Load(gateway, key, journals[0], [], padding=500), Load(gateway, other, journals[1], [], padding=500)]
        time.sleep(1.5)
        command = subprocess.Popen([shop.program, "app", "delete", "shop", "--confirm", "shop", "--data", str(data)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if number % 2:
            time.sleep(random.uniform(0.02, 0.25))
            command.kill()
        command.wait()
        if not number % 2:
            # A second later at most the gateway begins to remove what is left, just after it has said until when the id is taken.
            wait_until(10, lambda: noted(data, "free_ms"))
        time.sleep(random.uniform(0, 0.03))
        gateway.kill()
        for load in loads:
            load.stop()
        with sqlite3.connect(f"file:{data}/control.sqlite?mode=rwc", uri=True) as database:
            is_whole = database.execute("SELECT 1 FROM app WHERE id = 'shop'").fetchone() is not None
        if not is_whole and not noted(data, "erased_ms") and "event" in rows_of(data, "shop"):
            middle += 1
        gateway = Gateway(shop.program, data, shop.log)
        status = post(gateway, key)
        if is_whole:
            whole += 1
            good = good and status == 200
            subprocess.run([shop.program, "app", "delete", "shop", "--confirm", "shop", "--data", str(data)], check=True,
                           capture_output=True)
        else:
            good = good and status == 401
        wait_until(60, lambda: noted(data, "erased_ms"))
        left = rows_of(data, "shop")
        code = gateway.stop()
        if left or code != 0 or not good:
            print(f"D7: round {number}: {left} left, status {status}, the app was {'whole' if is_whole else 'gone'}: BAD", flush=True)
            good = False
        kept.append((data, journals[1]))
    return verdict("D7", f"{rounds} deletions, {middle} killed in the middle, {whole} before they began", kept) and good


def full(shop, rounds):
    mount = shop.folder / "small"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs", str(mount)],
                      capture_output=True).returncode:
        print("D6: skipped, no tmpfs can be mounted here (it needs root)")
        return True
    good, slowest, refusals = True, 0.0, 0
    try:
        journals = []
        for number in range(rounds):
            data, key = shop.data(f"d6-{number}", mount)
            journal = shop.journal(f"d6-{number}")
            gateway = Gateway(shop.program, data, shop.log, flags=("--disk-floor-bytes", "0"))
            ballast = mount / "ballast"
            free = os.statvfs(mount)
            with open(ballast, "wb") as file:
                file.write(b"x" * max(0, free.f_bavail * free.f_frsize - random.randint(200_000, 1_500_000)))
            load = Load(gateway, key, journal, [], padding=2_000)
            good = load.refused.wait(20) and good
            time.sleep(random.uniform(0, 0.2))
            ballast.unlink()
            load.stored_after_refusal.clear()
            freed = time.monotonic()
            good = load.stored_after_refusal.wait(10) and good
            slowest = max(slowest, time.monotonic() - freed)
            load.stop()
            refusals += load.answers.get(503, 0)
            good = load.answers.get(None, 0) == 0 and good
            good = gateway.stop() == 0 and good
            lost = account(data, journal)
            kept = shop.folder / f"d6-{number}"
            shutil.move(str(data), kept)
            journals.append((kept, journal))
            good = lost[0] == 0 and good
        return verdict("D6", f"{rounds} full disks, {refusals} answers 503, slowest recovery {slowest:.2f} s",
                       journals) and good and slowest < 5
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=False)


SCENARIOS = {"D2": (killed, 200), "D4": (power, 100), "D5": (fsync, 40), "D6": (full, 20), "D7": (deleted, 20)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scenario", nargs="?", default="all", choices=[*SCENARIOS, "all"])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--countersign", default=str(SCRIPTS.parent / ".build/debug/countersign-cli"))
    arguments = parser.parse_args()
    if sys.platform != "linux":
        print("torture-gateway: the models of power and disk need Linux", file=sys.stderr)
        return 2
    good = True
    for name, (run, rounds) in SCENARIOS.items():
        if arguments.scenario not in (name, "all"):
            continue
        shop = Workshop(arguments.countersign)
        good_here = run(shop, arguments.rounds or rounds)
        if good_here:
            shutil.rmtree(shop.folder, ignore_errors=True)
        else:
            print(f"{name}: what is left is in {shop.folder}")
        good = good_here and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
