"""Delivers events through the unchanged Python clients of Segment and RudderStack and looks for them in the database.

Usage: segment-clients.py COUNTERSIGN_BINARY
"""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request

import rudderstack.analytics.client as rudder
import segment.analytics.client as segment

EVENTS = 250


def run(binary, *arguments):
    return subprocess.run([binary, *arguments], check=True, capture_output=True, text=True).stdout


def main(binary):
    data = tempfile.mkdtemp(prefix="countersign-")
    os.chmod(data, 0o700)
    write_key = run(binary, "app", "create", "shop", "--data", data).strip()
    gateway = subprocess.Popen(
        [binary, "serve", "--data", data, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = None
        while address is None:
            line = gateway.stdout.readline()
            if not line:
                raise SystemExit("the gateway did not start")
            found = re.search(r"http://[0-9.:]+", line)
            address = found and found.group(0)
        errors = []
        for name, module, extra in [
            ("segment", segment, {"host": address, "gzip": True}),
            ("segment-plain", segment, {"host": address, "gzip": False}),
            ("rudder", rudder, {"host": address, "gzip": True}),
        ]:
            client = module.Client(write_key, on_error=lambda error, items: errors.append(error), **extra)
            for number in range(EVENTS):
                client.track(f"{name}-user-{number % 7}", "Order Placed", {"client": name, "number": number})
            client.identify(f"{name}-user-0", {"plan": "pro"})
            client.page(f"{name}-user-0", "docs", "home")
            client.screen(f"{name}-user-0", "docs", "home")
            client.group(f"{name}-user-0", "group-1")
            client.alias(f"{name}-anonymous", f"{name}-user-0")
            client.flush()
            client.join()
            rows = sqlite3.connect(f"file:{data}/events.sqlite?mode=ro", uri=True).execute(
                "SELECT type, count(*), count(DISTINCT message_id) FROM event WHERE user_id LIKE ? GROUP BY type",
                (name + "-user-%",)).fetchall()
            expected = [("alias", 1, 1), ("group", 1, 1), ("identify", 1, 1), ("page", 1, 1), ("screen", 1, 1),
                        ("track", EVENTS, EVENTS)]
            if errors or sorted(rows) != expected:
                raise SystemExit(f"{name}: {errors or rows}")
            print(f"{name}: {sum(row[1] for row in rows)} events, each once")
        assert urllib.request.urlopen(address + "/livez").status == 200
    finally:
        gateway.send_signal(signal.SIGTERM)
        code = gateway.wait(timeout=20)
        shutil.rmtree(data)
    if code != 0:
        raise SystemExit(f"the gateway ended with {code}")


main(sys.argv[1])
