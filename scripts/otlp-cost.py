#!/usr/bin/env python3
"""Measures what recording traces costs a gateway: three of them in turn under the same load, exporting nothing, 1 % and all.

Usage: scripts/otlp-cost.py PROGRAM [ROUNDS] [SECONDS]

Needs wrk and an optimized program. Prints the median of the rounds: CPU time of the gateway for each request, the exporting
thread's included, requests a second, and what share of the spans was dropped.
"""

import http.server
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

RATIOS = {"off": None, "sampled 1 %": "0.01", "sampled 100 %": "1"}
BATCH = """
local n, id = 0, "%s"
request = function()
  n = n + 1
  return wrk.format("POST", "/v1/batch", {["X-Write-Key"] = "%s", ["Authorization"] = "Bearer %s"},
    '{"batch":[{"type":"track","event":"Seen","messageId":"' .. id .. "-" .. n .. '","userId":"user-1","properties":{"note":"' .. string.rep("x", 800) .. '"}}]}')
end
"""
TICKS = os.sysconf("SC_CLK_TCK")


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


class Gateway:
    def __init__(self, program, folder, name, ratio, collector):
        data = f"{folder}/{name.replace(' ', '')}"

        def run(*arguments):
            return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout.strip()

        self.key = run("app", "create", "shop", "--data", data)
        run("key", "add", "shop", f"{folder}/public.pem", "--data", data)
        run("enforcement", "set", "shop", "required", "--yes", "--data", data)
        self.token = run("token", "create", "--key", f"{folder}/private.pem", "--user", "user-1", "--lifetime", "86400")
        flags = [] if ratio is None else ["--otlp-endpoint", f"http://127.0.0.1:{collector}", "--otlp-sample-ratio", ratio]
        self.process = subprocess.Popen([program, "serve", "--data", data, "--port", "0", "--log-level", "error", *flags],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip()

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")")[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def load(self, script, number, seconds):
        script.write_text(BATCH % (f"r{number}", self.key, self.token))
        before = self.cpu()
        said = subprocess.run(["wrk", "-t1", "-c64", f"-d{seconds}s", "-s", str(script), self.url],
                              capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in said:
            sys.exit(f"otlp-cost: {said}")
        count = int(re.search(r"(\d+) requests in", said)[1])
        return (self.cpu() - before) * 1e6 / count, count / seconds

    def dropped(self):
        text = urllib.request.urlopen(f"{self.url}/metrics", timeout=20).read().decode()
        found = re.search(r"^countersign_spans_dropped_total (\d+)$", text, re.M)
        return int(found[1]) if found else 0


def main():
    program = sys.argv[1]
    rounds, seconds = (int(one) for one in (sys.argv[2:] + ["7", "3"][len(sys.argv) - 2:])[:2])
    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "key", "generate", "--out", folder], capture_output=True, check=True)
        gateways = {name: Gateway(program, folder, name, ratio, collector.server_port) for name, ratio in RATIOS.items()}
        results = {name: [] for name in RATIOS}
        names = list(RATIOS)
        for number in range(-1, rounds):
            for name in names[number % 3:] + names[:number % 3]:
                result = gateways[name].load(Path(folder, "load.lua"), number, seconds)
                # The first round warms up.
                if number >= 0:
                    results[name].append(result)
        for name in names:
            cost = sorted(one[0] for one in results[name])
            rate = statistics.median(one[1] for one in results[name])
            sent = sum(one[1] * seconds for one in results[name]) * 5 * float(RATIOS[name] or 0)
            share = f"{100 * min(1, gateways[name].dropped() / sent):.0f} % of the spans dropped" if sent else ""
            print(f"{name:14} {statistics.median(cost):6.1f} us ({cost[0]:.1f} to {cost[-1]:.1f})  {rate:7.0f} requests/s  {share}")
            gateways[name].process.terminate()
            gateways[name].process.wait()


if __name__ == "__main__":
    main()
