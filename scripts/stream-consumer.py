"""Reads a stream as a durable consumer, and notes each message in a file before it acknowledges it, so that a kill at any moment
costs nothing.

    scripts/stream-consumer.py ADDRESS STREAM FILE
"""

import asyncio
import sqlite3
import sys

import nats
from nats.js.api import ConsumerConfig


async def read(events, database):
    while True:
        try:
            messages = await events.fetch(50, timeout=1)
        except (asyncio.TimeoutError, nats.errors.TimeoutError):
            continue
        for message in messages:
            # The message's number in the stream tells one that comes again.
            database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)",
                             (message.metadata.sequence.stream, message.headers["Countersign-Message-Id"]))
        database.commit()
        for message in messages:
            await message.ack()


async def main(address, stream, path):
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE IF NOT EXISTS seen (number INTEGER PRIMARY KEY, id TEXT NOT NULL)")
    while True:
        connection = None
        try:
            connection = await nats.connect(address, allow_reconnect=False, connect_timeout=2)
            # Soon given again what was under way when this was killed.
            settings = ConsumerConfig(ack_wait=2)
            await read(await connection.jetstream().pull_subscribe("", "books", stream, settings), database)
        except (nats.errors.Error, OSError, asyncio.TimeoutError):
            await asyncio.sleep(0.2)
        finally:
            if connection and not connection.is_closed:
                await connection.close()


asyncio.run(main(*sys.argv[1:]))
