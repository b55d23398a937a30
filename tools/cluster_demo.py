"""Demonstrates three gateways on one PostgreSQL behind HAProxy, which publish to NATS. Kills all except HAProxy.

The database requires TLS and a password. HAProxy uses packaging/cluster/haproxy.cfg. `countersign demo` runs the
devices. At the end the events are counted in the database, by a consumer of the gateways, and in the stream.
"""

import re
import shutil
import subprocess
import time
from collections import Counter

from .audit import Consumer
from .common import ROOT, free_port, installed, is_open, parse, until, workshop
from .gateway import Gateway, command, storage
from .nats import NATS, STREAM, differences
from .postgresql import PostgreSQL

TOTAL = 600


class HAProxy:
    """HAProxy in front of these gateways, configured by packaging/cluster. Readers use its host and port as a gateway's."""

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


def kill(what, victim):
    """Kills a process and starts it again a second later."""
    print(f"kill -9 of {what} (process {victim.process.pid})", flush=True)
    victim.kill()
    time.sleep(1)
    victim.start()
    print(f"{what} runs again (process {victim.process.pid})", flush=True)


def run(binary, folder):
    server, stream = PostgreSQL(folder), NATS(folder / "stream")
    started, devices = [server, stream], None
    try:
        server.secure()
        stream.start()

        def tell(*arguments):
            return command(binary, storage(folder, server.url()), *arguments)

        (folder / "write-key").write_text(tell("app", "create", "shop") + "\n")
        tell("key", "generate", "--out", folder)
        tell("key", "add", "shop", folder / "public.pem")
        tell("enforcement", "set", "shop", "required", "--yes")
        # The demo uses tokens that live for seconds. With a leeway they would not expire during the demo.
        tell("policy", "set", "shop", "--leeway", "0")
        bearer = tell("admin", "token", "create", "--name", "reader", "--scopes", "reader", "--app", "shop")
        tell("consumer", "create", "shop", "books")
        tell("stream", "create", "shop", "stream", stream.url, STREAM)
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
        for victim in [one, ("nats-server", stream), two, database, three, database]:
            kill(*victim)
            time.sleep(0.5)
        problems = ["the devices failed"] if devices.wait(timeout=120) else []
        consumer.stop()
        return count(server, consumer, stream, problems + consumer.problems)
    finally:
        if devices:
            devices.kill()
        for one in started[::-1]:
            one.kill()


def count(server, consumer, stream, problems):
    """Counts the demo's events in the database, at the consumer and in the stream. Returns whether each was found once."""
    rows = server.rows("SELECT message_id, user_id, coalesce(body::json->'properties'->>'replay_row', '') "
                       "FROM countersign.event ORDER BY position")
    stored = [row[0] for row in rows]
    places = {"in the database": stored, "by the consumer of the gateways": [event[2] for event in dict.fromkeys(consumer.seen)]}
    end = time.monotonic() + 60
    while stream.count() < len(stored) and time.monotonic() < end:
        time.sleep(0.2)
    places["in the stream"] = stream.ids()
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
    options = parse(arguments, "cluster_demo", __doc__)
    folder = workshop("countersign-cluster-demo-")
    good = run(options.countersign, folder)
    if good:
        shutil.rmtree(folder)
    else:
        print(f"logs and data: {folder}")
    return 0 if good else 1
