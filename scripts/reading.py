#!/usr/bin/env python3
"""Measures what reading events costs: CPU of the gateway for each event, in small and large logs, and what a reader at full
speed takes from the writer.

Usage: scripts/reading.py COUNTERSIGN_BINARY [--events N ...] [--rounds N]

Needs wrk. Take a release build. The figures of docs/performance.md are its output.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# As wide as the events of the other benchmarks: about 1 KB.
PROPERTIES = {"sku": "A-1", "price": 12.5, "note": "x" * 700}
WRK = """
local thread, count = 0, 0
function setup(t) t:set("id", thread); thread = thread + 1 end
function request()
  count = count + 1
  local user = math.random(2000)
  local body = '{"batch":[{"type":"track","event":"Order","messageId":"w-' .. os.time() .. '-' .. id .. '-' .. count ..
    '","userId":"u-' .. user .. '","properties":{"note":"' .. string.rep("x", 700) .. '"}}]}'
  return wrk.format("POST", "/v1/batch", {["X-Write-Key"] = "KEY", ["Content-Type"] = "application/json"}, body)
end
"""


def cpu(pid):
    """Microseconds that a process has run, in the threads that it has now."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat") as stat:
                total += int(stat.read().split()[0])
        except OSError:
            pass
    return total / 1e3


class Reader:
    def __init__(self, port, token, limit=1000):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Authorization": f"Bearer {token}", "Accept": "application/x-ndjson"}
        self.limit, self.position = limit, None

    def page(self):
        """The number of events of the next page; false when there is no more after it."""
        after = f"&after={self.position}" if self.position else ""
        self.connection.request("GET", f"/v1/apps/shop/events?limit={self.limit}{after}", headers=self.headers)
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (answer.status, body[:200])
        self.position = answer.headers["X-Countersign-Next"]
        return body.count(b"\n"), answer.headers["X-Countersign-Has-More"] == "true"


def fill(port, key, first, last):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for start in range(first, last, 500):
        batch = [{"type": "track", "event": "Order", "messageId": f"m-{number}", "userId": f"u-{number % 2000}",
                  "properties": PROPERTIES} for number in range(start, start + 500)]
        connection.request("POST", "/v1/batch", json.dumps({"batch": batch}), {"X-Write-Key": key, "Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status


def measure(pid, port, token, begin, count):
    """Microseconds of CPU and of waiting for each of `count` events after a position, and the position after them."""
    reader = Reader(port, token)
    reader.position = begin
    read, before, began = 0, cpu(pid), time.monotonic()
    more = True
    while more and read < count:
        events, more = reader.page()
        read += events
    wall = time.monotonic() - began
    return (cpu(pid) - before) / read, wall * 1e6 / read, reader.position


def write(port, script, seconds):
    """Requests a second, and the median latency in milliseconds."""
    said = subprocess.run(["wrk", "-t2", "-c8", f"-d{seconds}s", "--latency", "-s", script, f"http://127.0.0.1:{port}"],
                          capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said, said
    median = re.search(r"50%\s+([\d.]+)(us|ms|s)", said)
    scale = {"us": 1e-3, "ms": 1, "s": 1e3}[median.group(2)]
    return int(re.search(r"(\d+) requests in", said).group(1)) / seconds, float(median.group(1)) * scale


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("countersign")
    parser.add_argument("--events", type=int, nargs="+", default=[50_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    place = tempfile.mkdtemp(prefix="reading-")
    data = f"{place}/data"

    def run(*arguments):
        return subprocess.run([options.countersign, *arguments, "--data", data], check=True, capture_output=True, text=True).stdout.strip()

    key = run("app", "create", "shop")
    token = run("admin", "token", "create", "--name", "reader", "--scopes", "reader", "--app", "shop")
    process = subprocess.Popen([options.countersign, "serve", "--data", data, "--port", "0", "--requests-per-second-per-address", "0"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = next(int(found.group(1)) for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:(\d+)", line)))
        threading.Thread(target=process.stdout.read, daemon=True).start()
        stored, late = 0, None
        for size in options.events:
            fill(port, key, stored, size)
            stored = size
            time.sleep(3)
            rounds = {"first": [], "last": []}
            # Once through, for a position near the end.
            _, _, late = measure(process.pid, port, token, None, size - 40_000)
            for _ in range(5):
                for name, begin in (("first", None), ("last", late)):
                    rounds[name].append(measure(process.pid, port, token, begin, 40_000)[:2])
            for name, found in rounds.items():
                costs, waits = sorted(each[0] for each in found), sorted(each[1] for each in found)
                print(f"{size:>9} stored, {name:>5} 40,000: CPU {costs[0]:.1f} {statistics.median(costs):.1f} {costs[-1]:.1f} µs an event, "
                      f"waited {waits[0]:.1f} {statistics.median(waits):.1f} {waits[-1]:.1f} µs", flush=True)
        script = f"{place}/write.lua"
        with open(script, "w") as file:
            file.write(WRK.replace("KEY", key))
        alone, beside = [], []
        for _ in range(options.rounds):
            alone.append(write(port, script, 4))
            stop, read = threading.Event(), [0]

            def follow():
                reader = Reader(port, token)
                while not stop.is_set():
                    events, more = reader.page()
                    read[0] += events
                    if not more:
                        reader.position = None

            thread = threading.Thread(target=follow)
            thread.start()
            beside.append((*write(port, script, 4), read[0] / 4))
            stop.set()
            thread.join()
            time.sleep(1)
        for name, found in (("alone", alone), ("beside", beside)):
            print(f"writer {name}: {statistics.median(each[0] for each in found):.0f} requests a second, "
                  f"p50 {statistics.median(each[1] for each in found):.2f} ms")
        print(f"the reader read {statistics.median(each[2] for each in beside):.0f} events a second")
        ratios = sorted(two[0] / one[0] for one, two in zip(alone, beside))
        print(f"requests a second beside the reader to alone, by pairs: {ratios[0]:.2f} {statistics.median(ratios):.2f} {ratios[-1]:.2f}")
        with open(f"/proc/{process.pid}/status") as status:
            print(re.search(r"VmHWM:.*", status.read()).group(0))
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
