"""Shows three gateways on one PostgreSQL behind HAProxy, which feed a stream of NATS, while all of these are killed.

The database wants TLS and a password, HAProxy has packaging/cluster/haproxy.cfg, and the devices are those of `countersign demo`.
In the end the events are counted in the database, by a consumer of the gateways, in the stream and by the stream's consumer.
"""

import argparse
import asyncio
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter

from .audit import Consumer
from .common import PROGRAM, ROOT, free_port, installed, is_open, until, workshop
from .gateway import Gateway, command, storage
from .nats import NATS, STREAM, differences
from .postgresql import PostgreSQL

TOTAL = 600


class HAProxy:
    """HAProxy with the configuration of packaging/cluster before these gateways. It has an address as a gateway has."""

    def __init__(self, folder, gateways):
        self.host, self.port = "127.0.0.1", free_port()
        text = (ROOT / "packaging/cluster/haproxy.cfg").read_text()
        text = re.sub(r"bind :443 .*", f"bind {self.host}:{self.port}", text)
        text = re.sub(r"( +server gateway-\d .*\n)+", "".join(
            f"    server gateway-{number} {gateway.host}:{gateway.port}\n" for number, gateway in enumerate(gateways, 1)), text)
        (folder / "haproxy.cfg").write_text(text)
        with open(folder / "haproxy.log", "w") as log:
            self.process = subprocess.Popen([installed("haproxy", "haproxy"), "-db", "-f", folder / "haproxy.cfg"], stdout=log, stderr=log)
        self.url = f"http://{self.host}:{self.port}"
        until("HAProxy", lambda: is_open(self.port))

    def kill(self):
        self.process.kill()
        self.process.wait()


class StreamConsumer:
    """A durable consumer of the stream, as a process that notes each message in a file before it acknowledges it."""

    def __init__(self, server):
        self.server, self.file, self.process = server, server.folder / "seen.sqlite", None

    def start(self):
        with open(self.server.folder / "consumer.log", "a") as log:
            self.process = subprocess.Popen([sys.executable, "-B", "-m", "tools", "cluster_demo", "--consume", self.server.url, self.file],
                                            stdout=log, stderr=log)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def ids(self):
        """The ids that it has noted, in the stream's order."""
        try:
            with sqlite3.connect(f"file:{self.file}?mode=ro", uri=True) as database:
                return [row[0] for row in database.execute("SELECT id FROM seen ORDER BY number")]
        except sqlite3.Error:
            return []


async def consume(address, path):
    import nats
    from nats.js.api import ConsumerConfig

    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE IF NOT EXISTS seen (number INTEGER PRIMARY KEY, id TEXT NOT NULL)")
    while True:
        connection = None
        try:
            connection = await nats.connect(address, allow_reconnect=False, connect_timeout=2)
            # A message that a killed consumer had is delivered again soon.
            events = await connection.jetstream().pull_subscribe("", "books", STREAM, ConsumerConfig(ack_wait=2))
            while True:
                try:
                    messages = await events.fetch(50, timeout=1)
                except (asyncio.TimeoutError, nats.errors.TimeoutError):
                    continue
                # The number in the stream identifies a message that comes again.
                database.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?)", [
                    (message.metadata.sequence.stream, message.headers["Countersign-Message-Id"]) for message in messages])
                database.commit()
                for message in messages:
                    await message.ack()
        except (nats.errors.Error, OSError, asyncio.TimeoutError):
            await asyncio.sleep(0.2)
        finally:
            if connection and not connection.is_closed:
                await connection.close()


def kill(what, victim):
    """Kills a process and starts it again a second later."""
    print(f"kill -9 of {what} (process {victim.process.pid})", flush=True)
    victim.kill()
    time.sleep(1)
    victim.start()
    print(f"{what} runs again (process {victim.process.pid})", flush=True)


def run(binary, folder):
    server, stream = PostgreSQL(folder), NATS(folder / "stream")
    reader, started, devices = StreamConsumer(stream), [server, stream], None
    started.append(reader)
    try:
        server.secure()
        stream.start()

        def tell(*arguments):
            return command(binary, storage(folder, server.url()), *arguments)

        (folder / "write-key").write_text(tell("app", "create", "shop") + "\n")
        tell("key", "generate", "--out", folder)
        tell("key", "add", "shop", folder / "public.pem")
        tell("enforcement", "set", "shop", "required", "--yes")
        # With a leeway no token would expire within seconds.
        tell("policy", "set", "shop", "--leeway", "0")
        bearer = tell("admin", "token", "create", "--name", "reader", "--scopes", "reader", "--app", "shop")
        tell("consumer", "create", "shop", "books")
        tell("sink", "create", "shop", "stream", stream.url, STREAM)
        reader.start()
        gateways = [Gateway(binary, folder, f"gateway-{number}", database=server.url(), flags=("--trusted-proxies", "127.0.0.1"))
                    for number in range(1, 4)]
        started += gateways
        for gateway in gateways:
            gateway.start()
        proxy = HAProxy(folder, gateways)
        started.append(proxy)
        print(f"PostgreSQL on port {server.port}, gateways on {', '.join(str(gateway.port) for gateway in gateways)}, "
              f"HAProxy before them at {proxy.url}, a stream at {stream.url}", flush=True)
        consumer = Consumer("books", [proxy], {"Authorization": f"Bearer {bearer}"})
        devices = subprocess.Popen([binary, "demo", "--server", proxy.url, "--write-key-file", folder / "write-key", "--key",
                                    folder / "private.pem", "--data", folder / "devices"])
        time.sleep(1)
        one, two, three = ((f"gateway {number}", gateway) for number, gateway in enumerate(gateways, 1))
        database = ("PostgreSQL", server)
        for victim in [one, ("nats-server", stream), ("the stream's consumer", reader), two, database, three, database]:
            kill(*victim)
            time.sleep(0.5)
        problems = ["the devices failed"] if devices.wait(timeout=120) else []
        consumer.stop()
        return count(server, consumer, stream, reader, problems + consumer.problems)
    finally:
        if devices:
            devices.kill()
        for one in started[::-1]:
            one.kill()


def count(server, consumer, stream, reader, problems):
    """Counts each event of the demo at each place."""
    rows = server.rows("SELECT message_id, user_id, coalesce(body::json->'properties'->>'replay_row', '') "
                       "FROM countersign.event ORDER BY position")
    stored = [row[0] for row in rows]
    places = {"in the database": stored, "by the consumer of the gateways": [event[2] for event in dict.fromkeys(consumer.seen)]}
    for where, one in (("in the stream", stream), ("by the stream's consumer", reader)):
        end = time.monotonic() + 60
        while len(one.ids()) < len(stored) and time.monotonic() < end:
            time.sleep(0.2)
        places[where] = one.ids()
    good = True
    for where, found in places.items():
        times = Counter(found)
        of_demo = [times[identifier] for identifier, _, number in rows if number]
        once = sum(number == 1 for number in of_demo)
        is_right = once == TOTAL and len(of_demo) == TOTAL
        good = good and is_right
        print(f"{'ok    ' if is_right else 'WRONG '} {once} of {TOTAL} events are counted exactly once {where}")
        if found != stored:
            problems.append(f"{where}: {differences(stored, found)}")
    if any(user == "mallory" for _, user, _ in rows):
        problems.append("events of the device with forged tokens are in the database")
    for problem in problems:
        print(f"WRONG  {problem}")
    return good and not problems


def main(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m tools cluster_demo", description=__doc__)
    parser.add_argument("--countersign", default=str(PROGRAM), type=os.path.abspath)
    parser.add_argument("--consume", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.consume:
        return asyncio.run(consume(*options.consume))
    folder = workshop("countersign-cluster-demo-")
    good = run(options.countersign, folder)
    if good:
        shutil.rmtree(folder)
    else:
        print(f"The files are in {folder}")
    return 0 if good else 1
