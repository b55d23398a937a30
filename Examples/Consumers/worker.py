#!/usr/bin/env python3
"""A worker that books each event in SQLite exactly once, even if the worker or the gateway is killed.

    READER_TOKEN=csa_… worker.py http://127.0.0.1:8787 shop billing orders.sqlite

The transaction of the bookings also stores the number of the partition's last booked event. So events that are read again,
because an acknowledgement was lost, are skipped.
"""

import os
import signal
import sqlite3
import sys

from countersign_consumer import Consumer

SCHEMA = """
CREATE TABLE IF NOT EXISTS bookings (seq INTEGER PRIMARY KEY, message_id TEXT NOT NULL, user_id TEXT, verdict TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS progress (partition INTEGER PRIMARY KEY, seq INTEGER NOT NULL, position TEXT NOT NULL);
"""


def book(database, batch):
    """Books the new events of a batch and stores the partition's progress, in one transaction."""
    # IMMEDIATE, so that a worker with an older lease on the same events waits here, and then reads the new progress.
    database.execute("BEGIN IMMEDIATE")
    try:
        row = database.execute("SELECT seq FROM progress WHERE partition = ?", (batch.partition,)).fetchone()
        last = row[0] if row else 0
        new = [event for event in batch.events if event["seq"] > last]
        database.executemany(
            "INSERT INTO bookings VALUES (?, ?, ?, ?)",
            [(event["seq"], event["message_id"], event["user_id"], event["verdict"]) for event in new])
        if new:
            database.execute(
                "INSERT OR REPLACE INTO progress VALUES (?, ?, ?)",
                (batch.partition, new[-1]["seq"], new[-1]["position"]))
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


def main():
    endpoint, app, name, path = sys.argv[1:]
    database = sqlite3.connect(path, isolation_level=None, timeout=60)
    database.executescript(SCHEMA)
    with Consumer(endpoint, app, os.environ["READER_TOKEN"], name, lease_seconds=5, wait=2) as consumer:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: consumer.stop())
        for batch in consumer:
            book(database, batch)
            batch.ack()


if __name__ == "__main__":
    main()
