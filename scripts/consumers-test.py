#!/usr/bin/env python3
"""Reads a running gateway's events with Examples/Consumers, kills workers, and compares what was booked with the store.

    scripts/consumers-test.py .build/debug/countersign-cli
"""

import base64
import http.client
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from gateway import serving

EXAMPLES = Path(__file__).resolve().parent.parent / "Examples/Consumers"
sys.path.insert(0, str(EXAMPLES))

import worker  # noqa: E402
from countersign_consumer import Consumer, ConsumerError, read_events  # noqa: E402

EVENTS, USERS = 3_000, 12
DEATHS = 5


def prepare(run):
    key = run("app", "create", "shop")
    return key, run("admin", "token", "create", "--name", "test", "--scopes", "reader", "--app", "shop")


def post(address, path, body, authorization):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {
            "Authorization": authorization, "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def store(address, key, first, count):
    events = [
        {"type": "track", "event": "Order", "userId": f"user-{number % USERS}", "messageId": f"m-{number}",
         "properties": {"number": number}}
        for number in range(first, first + count)]
    authorization = "Basic " + base64.b64encode(f"{key}:".encode()).decode()
    status, answer = post(address, "/v1/batch", {"batch": events}, authorization)
    if status != 200:
        raise SystemExit(f"consumers: the gateway took no events: {status} {answer[:200]}")


def start(address, token, path):
    return subprocess.Popen(
        [sys.executable, "-B", str(EXAMPLES / "worker.py"), address, "shop", "books", path],
        env={**os.environ, "READER_TOKEN": token})


def wait_for_lease(address, token):
    """Until somebody works on a batch. Then a moment more, for whoever would acknowledge it too early."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
        connection.request("GET", "/v1/apps/shop/consumers/books", headers={"Authorization": "Bearer " + token})
        partitions = json.loads(connection.getresponse().read())["partitions"]
        connection.close()
        if any(partition["leased_until_ms"] for partition in partitions):
            return time.sleep(0.3)
        time.sleep(0.02)
    raise SystemExit("consumers: nobody took the events")


def booked(database):
    return [tuple(row) for row in database.execute("SELECT seq, user_id, message_id, verdict FROM bookings ORDER BY seq")]


def main():
    with serving(sys.argv[1], prepare) as (address, data, (key, token)), tempfile.TemporaryDirectory() as folder:
        status, answer = post(
            address, "/v1/apps/shop/consumers", {"name": "books", "partitions": 2}, "Bearer " + token)
        if status != 201:
            raise SystemExit(f"consumers: the consumer was not made: {status} {answer[:200]}")
        path = str(Path(folder) / "books.sqlite")
        database = sqlite3.connect(path, isolation_level=None, timeout=60)
        database.executescript(worker.SCHEMA)
        store(address, key, 0, 100)

        # One that dies after its own commit and before it has told the gateway.
        consumer = Consumer(address, "shop", token, "books", limit=30, lease_seconds=5, wait=0)
        lost = next(iter(consumer))
        worker.book(database, lost)
        consumer._gateway.close()
        before = booked(database)

        workers = [start(address, token, path) for _ in range(2)]
        try:
            for number in range(100, EVENTS, 100):
                dies = number % (EVENTS // (DEATHS + 1)) == 0
                if dies:
                    # Nobody can commit: all who get events are held between the poll and their own commit.
                    database.execute("BEGIN IMMEDIATE")
                store(address, key, number, 100)
                if dies:
                    wait_for_lease(address, token)
                    for index in range(2):
                        workers[index].kill()
                        workers[index].wait()
                    database.execute("COMMIT")
                    workers = [start(address, token, path) for _ in range(2)]
            end = time.monotonic() + 60
            while len(booked(database)) < EVENTS:
                if time.monotonic() > end or any(one.poll() is not None for one in workers):
                    raise SystemExit(f"consumers: only {len(booked(database))} of {EVENTS} events were booked")
                time.sleep(0.1)
        finally:
            for one in workers:
                one.terminate()
            codes = [one.wait(timeout=60) for one in workers]
        if codes != [0, 0]:
            raise SystemExit(f"consumers: workers ended with {codes} when they were told to")

        pages = list(read_events(address, "shop", token, limit=1_000, wait=0))
        read = [(event["seq"], event["user_id"], event["message_id"], event["verdict"])
                for one in pages for event in one.events]
        with sqlite3.connect(f"file:{data}/events.sqlite?mode=ro", uri=True) as events:
            stored = events.execute("SELECT seq, user_id, message_id FROM event ORDER BY seq").fetchall()
        events.close()
        found = booked(database)
        database.close()
        if [row[:3] for row in found] != stored or found != read or len(stored) != EVENTS:
            raise SystemExit(f"consumers: {len(stored)} stored, {len(read)} read by position, {len(found)} booked: not the same")
        if not set(before) <= set(found):
            raise SystemExit("consumers: what was booked before the first death has changed")
        try:
            next(read_events(address, "shop", token + "x"))
        except ConsumerError as error:
            if error.code != "unauthenticated":
                raise
        print(f"consumers: {EVENTS} events were each booked once by two workers, which were killed {DEATHS} times before "
              "their commit and once after it")


if __name__ == "__main__":
    main()
