#!/usr/bin/env python3
"""Shows several gateways on one PostgreSQL that feed a stream of NATS: devices send through a proxy while all of these are killed.

Usage: scripts/demo-cluster.py COUNTERSIGN_BINARY [NATS_SERVER_BINARY]

Everything runs as ordinary processes in a temporary folder: a PostgreSQL server that wants TLS and a password, three
gateways, HAProxy with packaging/cluster/haproxy.cfg, the devices of `countersign demo`, a nats-server and a consumer of its
stream. In the middle the gateways, the database, the nats-server and the stream's consumer are killed with SIGKILL and started
again. In the end the events are counted in the database, by a consumer of the gateways, in the stream and by the stream's
consumer. Without a nats-server there is no stream.

Exit status: 0 each of 600 events is there exactly once, 1 otherwise.
"""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import cluster
import streams
from cluster import Gateway, Server, command, free_port, until
from histories import Consumer, request

ROOT = Path(__file__).resolve().parent.parent
TOTAL = 600


def say(text):
    print(text, flush=True)


class Proxy:
    """HAProxy with the configuration of packaging/cluster, before these gateways; it has an address as a gateway does."""

    def __init__(self, folder, gateways):
        program = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if not program:
            raise SystemExit("demo-cluster: there is no haproxy; scripts/setup.sh cluster installs it")
        self.host, self.port = "127.0.0.1", free_port()
        text = (ROOT / "packaging/cluster/haproxy.cfg").read_text()
        text = re.sub(r"bind :443 .*", f"bind {self.host}:{self.port}", text)
        text = re.sub(r"( +server gateway-\d .*\n)+", "".join(
            f"    server gateway-{number} {gateway.host}:{gateway.port}\n" for number, gateway in enumerate(gateways, 1)), text)
        (folder / "haproxy.cfg").write_text(text)
        with open(folder / "haproxy.log", "w") as log:
            self.process = subprocess.Popen([program, "-db", "-f", folder / "haproxy.cfg"], stdout=log, stderr=log)
        self.url = f"http://{self.host}:{self.port}"

    def answers(self):
        try:
            return request(self, "GET", "/livez", timeout=5)[0] == 200
        except OSError:
            return False


class Stream:
    """A nats-server, and a consumer of its stream that notes what it sees."""

    def __init__(self, program, folder):
        place = folder / "stream"
        place.mkdir()
        self.server, self.file = streams.Server(program, place, False), place / "seen.sqlite"
        self.url, self.process, self.log = f"nats://127.0.0.1:{self.server.port}", None, place / "consumer.log"

    def start(self):
        """Starts the consumer; the server starts by itself."""
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([ROOT / ".venv/stream/bin/python3", ROOT / "scripts/stream-consumer.py", self.url,
                                             streams.STREAM, self.file], stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def held(self):
        """The ids of what is in the stream, in its order."""
        return streams.ids(streams.published(self.server.port))

    def seen(self):
        """The ids that the consumer has noted, in the stream's order."""
        try:
            with sqlite3.connect(f"file:{self.file}?mode=ro", uri=True) as database:
                return [row[0] for row in database.execute("SELECT id FROM seen ORDER BY number")]
        except sqlite3.Error:
            return []


def kill(what, victim):
    """Kills something, and starts it again a second later."""
    say(f"kill -9 of {what} (process {victim.process.pid})")
    victim.kill()
    time.sleep(1)
    victim.start()
    say(f"{what} runs again (process {victim.process.pid})")


def run(binary, nats, folder):
    began = time.monotonic()
    server, stream = Server(folder), nats and Stream(nats, folder)
    started, devices = [server], None
    try:
        server.secure()
        if stream:
            started += [stream.server, stream]
            stream.server.start()
        else:
            say("There is no nats-server, so the demo goes on without a stream")

        def tell(*arguments):
            return command(binary, folder, server.url(), *arguments)

        key = tell("app", "create", "shop")
        (folder / "write-key").write_text(key + "\n")
        tell("key", "generate", "--out", str(folder))
        tell("key", "add", "shop", str(folder / "public.pem"))
        tell("enforcement", "set", "shop", "required", "--yes")
        # Or no token would expire within seconds.
        tell("policy", "set", "shop", "--leeway", "0")
        reader = tell("admin", "token", "create", "--name", "reader", "--scopes", "reader", "--app", "shop")
        tell("consumer", "create", "shop", "books")
        if stream:
            tell("sink", "create", "shop", "stream", stream.url, streams.STREAM)
            stream.start()
        gateways = [Gateway(binary, folder, f"gateway-{number}", server.url(), {"COUNTERSIGN_TRUSTED_PROXIES": "127.0.0.1"})
                    for number in range(1, 4)]
        started += gateways
        for gateway in gateways:
            gateway.start()
        proxy = Proxy(folder, gateways)
        started.append(proxy)
        until("the proxy answers", proxy.answers)
        say(f"PostgreSQL on port {server.port}, gateways on {', '.join(str(gateway.port) for gateway in gateways)}, "
            f"HAProxy before them at {proxy.url}" + (f", a stream at {stream.url}" if stream else "")
            + f" ({time.monotonic() - began:.0f} s)")

        consumer = Consumer("books", [proxy], reader)
        devices = subprocess.Popen([binary, "demo", "--server", proxy.url, "--write-key-file", folder / "write-key", "--key",
                                    folder / "private.pem", "--data", folder / "devices"])
        time.sleep(1)
        one, two, three = ((f"gateway {number}", gateway) for number, gateway in enumerate(gateways, 1))
        database = ("PostgreSQL", server)
        of_stream = [("nats-server", stream.server), ("the stream's consumer", stream)] if stream else []
        for victim in [one, *of_stream, two, database, three, database]:
            kill(*victim)
            time.sleep(0.5)
        problems = ["the devices are not content"] if devices.wait(timeout=120) else []
        consumer.stop()
        problems += consumer.problems

        rows = server.rows("SELECT message_id, user_id, coalesce(body::json->'properties'->>'replay_row', '') "
                           "FROM countersign.event ORDER BY position")
        recorded = Counter(number for _, _, number in rows if number)
        seen = Counter(identifier for _, _, identifier in dict.fromkeys(consumer.seen))
        read = Counter({number: seen[identifier] for identifier, _, number in rows if number})
        stored = [identifier for identifier, _, _ in rows]
        places = [("in the database", recorded), ("by the consumer of the gateways", read)]
        if stream:
            problems += behind(stream, stored)
            for where, of_stream in (("in the stream", stream.held()), ("by the stream's consumer", stream.seen())):
                times = Counter(of_stream)
                places.append((where, Counter({number: times[identifier] for identifier, _, number in rows if number})))
                if of_stream != stored:
                    problems.append(f"{where}: {streams.differences(stored, of_stream)}")
        counts = []
        for where, found in places:
            once = sum(count == 1 for count in found.values())
            counts.append(once == TOTAL and len(found) == TOTAL)
            say(f"{'ok    ' if counts[-1] else 'WRONG '} {once} of {TOTAL} events are counted exactly once {where}"
                + ("" if counts[-1] else f"; {len(found)} different ones, {sum(found.values())} in all"))
        forged = sum(user == "mallory" for _, user, _ in rows)
        if forged:
            problems.append(f"{forged} events of the device with forged tokens are in the database")
        if seen.keys() != {identifier for identifier, _, _ in rows}:
            problems.append("the consumer has not seen what is in the database")
        for problem in problems:
            say(f"WRONG  {problem}")
        return all(counts) and not problems
    finally:
        for process in [one.process for one in started[::-1]] + ([devices] if devices else []):
            if process and process.poll() is None:
                process.kill()
                process.wait()


def behind(stream, stored):
    """Waits until the stream and its consumer have as many as are stored; says what did not come in time."""
    problems = []
    for what, found in (("the stream", stream.held), ("the stream's consumer", stream.seen)):
        end = time.monotonic() + 60
        while len(found()) < len(stored) and time.monotonic() < end:
            time.sleep(0.2)
        if len(found()) < len(stored):
            problems.append(f"{what} is behind")
    return problems


def main():
    if not 2 <= len(sys.argv) <= 3:
        raise SystemExit(__doc__.split("\n\n")[1])
    folder = cluster.workshop("countersign-demo-cluster-")
    good = run(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else None, folder)
    if good:
        shutil.rmtree(folder)
    else:
        say(f"What is left is in {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
