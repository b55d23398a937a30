"""Tests the Python library that reads events (Examples/Consumers): its unit tests, then two workers that are killed repeatedly.
The workers' database must have each stored event once."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import audit
from .common import ROOT, output, parse, until
from .gateway import Gateway

EXAMPLES = ROOT / "Examples/Consumers"


def start(gateway, token, path):
    return [subprocess.Popen([sys.executable, "-B", EXAMPLES / "worker.py", gateway.url, "shop", "books", path],
                             env={**os.environ, "READER_TOKEN": token}) for _ in range(2)]


def booked(database):
    return [tuple(row) for row in database.execute("SELECT seq, user_id, message_id, verdict FROM bookings ORDER BY seq")]


def kill_workers(gateway, bearer, path, events, rounds):
    """Two workers write events to a database. Kills both between their poll and their commit, `rounds` times."""
    sys.path.insert(0, str(EXAMPLES))
    import worker
    from countersign_consumer import Consumer

    database, token = sqlite3.connect(path, isolation_level=None, timeout=60), bearer["Authorization"].split()[1]
    database.executescript(worker.SCHEMA)
    gateway.track(100)
    # Simulates a worker that is killed after its commit and before its acknowledgement.
    consumer = Consumer(gateway.url, "shop", token, "books", limit=30, lease_seconds=5, wait=0)
    worker.book(database, next(iter(consumer)))
    consumer._gateway.close()
    before = booked(database)

    def is_leased():
        partitions = gateway.ask("GET", "/v1/apps/shop/consumers/books", headers=bearer)[1]["partitions"]
        return any(partition["leased_until_ms"] for partition in partitions)

    workers, kills = start(gateway, token, path), 0
    try:
        for number in range(100, events, 100):
            index, last = number // 100, events // 100 - 1
            dies = index * rounds // last > (index - 1) * rounds // last
            kills += dies
            if dies:
                # This transaction blocks the workers between their poll and their commit.
                database.execute("BEGIN IMMEDIATE")
            gateway.track(100)
            if dies:
                until("a lease", is_leased, 30)
                time.sleep(0.3)  # A faulty worker acknowledges in this time, before its commit.
                for one in workers:
                    one.kill()
                    one.wait()
                database.execute("COMMIT")
                workers = start(gateway, token, path)
        until(f"{events} booked events", lambda: len(booked(database)) >= events or any(one.poll() is not None for one in workers),
              max(60, events / 100), pause=0.1)
    finally:
        for one in workers:
            one.terminate()
        codes = [one.wait(timeout=60) for one in workers]
    assert codes == [0, 0] and kills == rounds, f"workers ended with {codes} after {kills} kills"
    found = booked(database)
    database.close()
    assert set(before) <= set(found), "bookings from before the first kill have changed"
    return found


def compare(gateway, bearer, found):
    from countersign_consumer import ConsumerError, read_events

    token = bearer["Authorization"].split()[1]
    read = audit.columns(event for page in read_events(gateway.url, "shop", token, limit=1_000, wait=0) for event in page.events)
    # No event has a token.
    audit.compare("booked, and read by position", gateway, gateway.history(), [(*row, None) for row in found], read)
    try:
        next(read_events(gateway.url, "shop", token + "x"))
    except ConsumerError as error:
        assert error.code == "unauthenticated", error


def main(arguments):
    options = parse(arguments, "consumers", __doc__, rounds=5)
    events = 100 * max(30, options.rounds + 1)
    output(sys.executable, "-B", "-W", "error::ResourceWarning", "-m", "unittest", cwd=EXAMPLES)
    with Gateway(options.countersign) as gateway, tempfile.TemporaryDirectory() as folder:
        gateway.app()
        bearer = gateway.bearer("test", "reader", "shop")
        gateway.start()
        gateway.run("consumer", "create", "shop", "books", "--partitions", 2)
        compare(gateway, bearer, kill_workers(gateway, bearer, str(Path(folder) / "books.sqlite"), events, options.rounds))
    print(f"consumers: the unit tests pass; {events} events were each booked once by two workers, which were killed {options.rounds} times before "
          "their commit and once after it")
