#!/usr/bin/env python3
"""Shows several gateways on one PostgreSQL: devices send through a proxy while gateways and the database are killed.

Usage: scripts/demo-cluster.py COUNTERSIGN_BINARY

Everything runs as ordinary processes in a temporary folder: a PostgreSQL server that wants TLS and a password, three
gateways, HAProxy with packaging/cluster/haproxy.cfg, and four devices. In the middle gateways and the database are killed with SIGKILL and started
again. In the end the events are counted in the database and by a consumer.

Exit status: 0 each of 600 events is there exactly once, 1 otherwise.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import cluster
from cluster import Gateway, Server, command, free_port, until
from histories import Consumer, request

ROOT = Path(__file__).resolve().parent.parent
DEVICES, PARTS, PART = 4, 15, 10
SHOP = ["Product Viewed", "Product Added", "Cart Viewed", "Checkout Started", "Order Completed"]


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


class Device(threading.Thread):
    """One user's events, ten at a time, each signed for with a token of the user's."""

    def __init__(self, binary, folder, number, url):
        super().__init__()
        self.number, self.done, self.problem = number, 0, None
        self.send = [binary, "send", "--server", url, "--write-key-file", folder / "write-key", "--key", folder / "private.pem"]
        self.parts = []
        for part in range(PARTS):
            file = folder / f"device-{number}-{part}.ndjson"
            file.write_text("".join(json.dumps({"event": random.choice(SHOP), "userId": f"user-{number}", "properties": {
                "number": part * PART + index}}) + "\n" for index in range(PART)))
            self.parts.append(file)

    def run(self):
        for part in self.parts:
            done = subprocess.run([*self.send, part], capture_output=True, text=True)
            if done.returncode:
                self.problem = done.stderr.strip()
                return
            self.done += PART
            time.sleep(0.4)


def kill(what, process, start):
    """Kills something, and starts it again a second later."""
    say(f"  kill -9 of {what} (process {process.pid})")
    process.kill()
    process.wait()
    time.sleep(1)
    start()
    say(f"  {what} runs again")


def run(binary, folder):
    began = time.monotonic()
    server = Server(folder)
    started = [server]
    try:
        server.secure()

        def tell(*arguments):
            return command(binary, folder, server.url(), *arguments)

        key = tell("app", "create", "shop")
        (folder / "write-key").write_text(key + "\n")
        tell("key", "generate", "--out", str(folder))
        tell("key", "add", "shop", str(folder / "public.pem"))
        tell("enforcement", "set", "shop", "required")
        reader = tell("admin", "token", "create", "--name", "reader", "--scopes", "reader", "--app", "shop")
        tell("consumer", "create", "shop", "books")
        gateways = [Gateway(binary, folder, f"gateway-{number}", server.url(), {"COUNTERSIGN_TRUSTED_PROXIES": "127.0.0.1"})
                    for number in range(1, 4)]
        started += gateways
        for gateway in gateways:
            gateway.start()
        proxy = Proxy(folder, gateways)
        started.append(proxy)
        until("the proxy answers", proxy.answers)
        say(f"PostgreSQL on port {server.port}, gateways on {', '.join(str(gateway.port) for gateway in gateways)}, "
            f"HAProxy before them at {proxy.url} ({time.monotonic() - began:.0f} s)")

        total = DEVICES * PARTS * PART
        devices = [Device(binary, folder, number, proxy.url) for number in range(1, DEVICES + 1)]
        consumer = Consumer("books", [proxy], reader)
        for device in devices:
            device.start()
        for share, victim in ((0.15, 0), (0.35, None), (0.55, 1), (0.7, 2), (0.85, None)):
            until("the devices go on", lambda: sum(device.done for device in devices) >= share * total
                  or any(device.problem for device in devices), 120)
            say(f"{sum(device.done for device in devices)} of {total} events are acknowledged")
            if victim is None:
                kill("PostgreSQL", server.process, server.start)
            else:
                kill(f"gateway {victim + 1}", gateways[victim].process, gateways[victim].start)
        for device in devices:
            device.join(timeout=120)
        problems = [f"device {device.number}: {device.problem or 'is not done'}" for device in devices if device.done < PARTS * PART]
        consumer.stop()
        problems += consumer.problems

        rows = Counter(identifier for identifier, in server.rows("SELECT message_id FROM countersign.event"))
        seen = Counter(identifier for _, _, identifier in dict.fromkeys(consumer.seen))
        counts = []
        for where, found in (("in the database", rows), ("by the consumer", seen)):
            once = sum(count == 1 for count in found.values())
            counts.append(once == total and len(found) == total)
            say(f"{'ok   ' if counts[-1] else 'WRONG'} {once} of {total} events are counted exactly once {where}"
                + ("" if counts[-1] else f"; {len(found)} different ones, {sum(found.values())} in all"))
        for problem in problems:
            say(f"WRONG {problem}")
        return all(counts) and not problems
    finally:
        for one in started[::-1]:
            if one.process and one.process.poll() is None:
                one.process.kill()
                one.process.wait()


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__.split("\n\n")[1])
    folder = cluster.workshop("countersign-demo-cluster-")
    good = run(sys.argv[1], folder)
    if good:
        shutil.rmtree(folder)
    else:
        say(f"What is left is in {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
