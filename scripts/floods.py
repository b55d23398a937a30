#!/usr/bin/env python3
"""Floods a gateway with default settings, one way after another, and measures its resident memory.

    swift build -c release --product countersign-cli
    scripts/floods.py .build/release/countersign-cli [flood …]

Ends with 1 when the gateway held 300 MB or more at any moment, or stopped answering, and for floods of work that grows
(`growing`) when /livez takes 20 ms or more at p99. Linux only: the senders have
addresses of 127.0.0.0/8, a hundred connections each, and the memory is read from /proc.
"""

import gzip
import json
import multiprocessing
import os
import random
import re
import resource
import selectors
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

LIMIT_MEGABYTES = 300
BODY = 4 * 1024 * 1024
SECONDS = float(os.environ.get("FLOOD_SECONDS", "8"))
PER_ADDRESS = 100


class Gateway:
    def __init__(self, program, *settings, files=None):
        self.folder = tempfile.mkdtemp(prefix="countersign-floods-")
        environment = {**os.environ, "COUNTERSIGN_DATA": self.folder}

        def run(*arguments):
            return subprocess.run(
                [program, *arguments], env=environment, check=True, capture_output=True, text=True
            ).stdout.strip()

        self.run = run
        self.key = run("app", "create", "shop")
        self.token = run("admin", "token", "create", "--name", "floods")
        self.process = subprocess.Popen(
            [program, "serve", "--port", "0", "--log-level", "off", *settings], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            preexec_fn=lambda: files and resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        )
        self.port = int(self.process.stdout.readline().strip().rsplit(":", 1)[1].split("/")[0])

    def memory(self, name):
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) / 1000
        raise RuntimeError(name)

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as file:
            file.write("5")

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)


class Honest(threading.Thread):
    """A client with an address of its own, whose requests are answered meanwhile."""

    def __init__(self, gateway, path="/livez", body=None, headers=None):
        super().__init__(daemon=True)
        self.gateway, self.path, self.body, self.headers = gateway, path, body, headers or {}
        self.times, self.statuses, self.stopped = [], {}, threading.Event()

    def run(self):
        while not self.stopped.wait(0.05):
            began = time.monotonic()
            try:
                connection = socket.create_connection(
                    ("127.0.0.1", self.gateway.port), 10, ("127.0.200.1", 0))
                body = self.body() if self.body else b""
                fields = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
                method = "POST" if self.body else "GET"
                connection.sendall(
                    f"{method} {self.path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}"
                    f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                status = int(connection.recv(64).split()[1])
                connection.close()
            except (OSError, IndexError, ValueError):
                status = 0
            self.times.append(time.monotonic() - began)
            self.statuses[status] = self.statuses.get(status, 0) + 1

    def report(self):
        self.stopped.set()
        self.join()
        times = sorted(self.times) or [0]
        return f"{self.statuses}, p99 {times[int((len(times) - 1) * 0.99)] * 1000:.0f} ms"


def flood(gateway, count, payload, reads=True, again=True, buffer=None, resets=False):
    """`count` connections send for some seconds; those that the gateway closes or answers begin again.

    `payload` is what each sends, or makes it anew each time. Who does not read holds what it was sent; who resets leaves
    as soon as all is sent.
    """
    selector = selectors.DefaultSelector()
    silent = []
    opened = answered = closed = 0
    make = payload if callable(payload) else lambda: payload

    def begin(number):
        nonlocal opened
        connection = socket.socket()
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        if resets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        address = number // PER_ADDRESS
        connection.bind((f"127.0.{1 + address // 250}.{1 + address % 250}", 0))
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", gateway.port))
        opened += 1
        selector.register(
            connection, selectors.EVENT_READ | selectors.EVENT_WRITE, [number, memoryview(make())])

    def leave(connection):
        selector.unregister(connection)
        connection.close()

    for number in range(count):
        begin(number)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for key, events in selector.select(0.2):
            connection, state = key.fileobj, key.data
            try:
                if events & selectors.EVENT_WRITE and state[1]:
                    state[1] = state[1][connection.send(state[1][:262144]):]
                    if not state[1] and not reads:
                        selector.unregister(connection)
                        silent.append(connection)
                        continue
                    if not state[1] and resets:
                        leave(connection)
                        begin(state[0])
                        continue
                    if not state[1]:
                        selector.modify(connection, selectors.EVENT_READ, state)
                if events & selectors.EVENT_READ:
                    if not connection.recv(65536):
                        raise ConnectionResetError
                    answered += 1
                    if again and not state[1]:
                        state[1] = memoryview(make())
                        selector.modify(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, state)
            except OSError:
                closed += 1
                leave(connection)
                if again and time.monotonic() < end:
                    begin(state[0])
    for connection in [key.fileobj for key in selector.get_map().values()] + silent:
        connection.close()
    selector.close()
    return f"{opened} opened, {answered} answers, {closed} closed"


def request(path, body=b"", method="POST", length=None, **fields):
    lines = [f"{method} {path} HTTP/1.1", "Host: a"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    if length is not None or body:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


ID = b"0123456789abcdef"


def batch(count, size):
    """Events whose ids begin with `ID`; `fresh` gives them others, so that they are stored and are no duplicates."""
    text = "x" * size
    return json.dumps({"batch": [
        {"type": "track", "messageId": f"{ID.decode()}-{number}", "anonymousId": "a", "event": "E",
         "properties": {"t": text}}
        for number in range(count)]}).encode()


def fresh(payload):
    return lambda: payload.replace(ID, os.urandom(8).hex().encode())


def floods(gateway):
    part = b" " * (BODY * 15 // 16)
    yield "bodies that stop before their end", lambda: flood(gateway, 1000, request("/v1/batch", part, length=BODY))
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    yield "chunked bodies that stop", lambda: flood(
        gateway, 1000, request("/v1/batch", Transfer_Encoding="chunked") + chunk * 60)
    yield "small bodies that stop", lambda: flood(
        gateway, 4000, request("/v1/batch", b" " * 60_000, length=65_000))
    bomb = gzip.compress(b" " * (BODY - 1000), 9)
    filler = gzip.compress(os.urandom(42_000) + b" " * (BODY - 50_000), 9)
    yield "gzip bodies", lambda: flood(
        gateway, 500, request("/v1/batch", filler, Content_Encoding="gzip"))
    yield "gzip bombs", lambda: flood(gateway, 500, request("/v1/batch", bomb, Content_Encoding="gzip"))
    dense = b'{"batch":[' + b"{}," * (BODY // 3 - 10) + b"{}]}"
    yield "dense JSON", lambda: flood(
        gateway, 500, request("/v1/batch", dense, X_Write_Key=gateway.key))
    numbers = b'{"batch":[' + b"1," * (BODY // 2 - 10) + b"1]}"
    yield "dense numbers", lambda: flood(
        gateway, 500, request("/v1/batch", numbers, X_Write_Key=gateway.key))
    events = request("/v1/batch", batch(900, 4_000), X_Write_Key=gateway.key)
    yield "events", lambda: flood(gateway, 500, fresh(events))
    yield "large events", lambda: flood(
        gateway, 500, fresh(request("/v1/batch", batch(7, 510_000), X_Write_Key=gateway.key)))
    yield "events whose senders leave", lambda: flood(gateway, 500, fresh(events), resets=True)
    yield "gzip bodies whose senders leave", lambda: flood(
        gateway, 500, request("/v1/batch", filler, Content_Encoding="gzip"), resets=True)
    yield "headers that never end", lambda: flood(
        gateway, 5000, b"GET /livez HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 15_000)
    yield "idle connections", lambda: flood(gateway, 5000, request("/livez", method="GET"), again=False)
    files = [f"/admin/assets/{name}" for name in assets(gateway)] + ["/openapi.json", "/admin/api/openapi.json"]
    largest = max(files, key=lambda path: len(get(gateway, path)))
    yield f"slow readers of {largest}", lambda: flood(
        gateway, 4000, request(largest, method="GET") * 20, reads=False, buffer=4096)
    yield "slow readers of /openapi.json", lambda: flood(
        gateway, 4000, request("/openapi.json", method="GET") * 20, reads=False, buffer=4096)
    yield "live streams that nobody reads", lambda: flood(
        gateway, 1000, request("/admin/api/live", method="GET", Authorization="Bearer " + gateway.token),
        reads=False, buffer=4096)
    sign_in = json.dumps({"name": "n" * 1000, "password": "p" * 1000}).encode()
    yield "sign-ins", lambda: flood(gateway, 400, request("/admin/api/session", sign_in))
    yield "large admin bodies", lambda: flood(
        gateway, 500, request("/admin/api/session", b'{"name":"' + b"n" * 4_000_000 + b'"}'))


class Pulse:
    """Requests a path repeatedly, each time over a new connection. It is a separate process, so that the load generator
    does not delay it."""

    def __init__(self, gateway, path="/livez", headers=lambda: ""):
        self.port, self.path, self.headers = gateway.port, path, headers
        self.stopped = multiprocessing.Event()
        self.results = multiprocessing.Queue()
        self.process = multiprocessing.Process(target=self.run, daemon=True)
        self.process.start()

    def run(self):
        times, failed = [], 0
        while not self.stopped.wait(0.01):
            began = time.monotonic()
            try:
                with socket.create_connection(("127.0.0.1", self.port), 10, ("127.0.200.2", 0)) as connection:
                    connection.sendall(
                        f"GET {self.path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{self.headers()}\r\n".encode())
                    failed += not connection.recv(64)
            except OSError:
                failed += 1
            times.append(time.monotonic() - began)
        self.results.put((times, failed))

    def end(self):
        """Returns the p99 latency in milliseconds, the number of requests, and the number without a response."""
        self.stopped.set()
        times, failed = self.results.get(timeout=30)
        self.process.join()
        times.sort()
        return times[int((len(times) - 1) * 0.99)] * 1000, len(times), failed


def fill(gateway, key, batches):
    connection = socket.create_connection(("127.0.0.1", gateway.port), 60)
    body = fresh(request("/v1/batch", batch(900, 20), X_Write_Key=key))
    for _ in range(batches):
        connection.sendall(body())
        if b" 200 " not in connection.recv(65536).split(b"\r\n")[0]:
            raise RuntimeError("the log could not be filled")
    connection.close()


def expect(condition, what):
    return "" if condition else f"; WRONG: {what}"


def retention(program):
    """Retention of a small app in a log with many events of another app. Sweeps run once a minute."""
    gateway = Gateway(program)
    gateway.run("app", "create", "idle")
    fill(gateway, gateway.key, 400)
    gateway.run("app", "retention", "idle", "--days", "30")
    event = fresh(request("/v1/batch", batch(1, 200), X_Write_Key=gateway.key))
    end = time.monotonic() + 70

    def run():
        said = []
        while time.monotonic() < end:
            said.append(flood(gateway, 8, event))
        return said[-1]
    return gateway, run, Pulse(gateway), lambda: ""


def properties(program):
    """Anonymous profiles with a growing number of properties, merged into one profile."""
    gateway = Gateway(program)
    fields = {"Authorization": f"Token {gateway.key}", "Content_Type": "application/json"}

    def payload():
        cookie = f"c{random.randrange(12)}"
        if random.random() < 0.1:
            ids, names = {"registered": "u", "cookie": cookie}, {}
        else:
            start = os.urandom(6).hex()
            ids, names = {"cookie": cookie}, {f"{start}{number}": 0 for number in range(30_000)}
        body = json.dumps({"customer_ids": ids, "properties": names, "timestamp": 1}).encode()
        return request("/track/v2/projects/shop/customers", body, **fields)
    return gateway, lambda: flood(gateway, 8, payload), Pulse(gateway), lambda: ""


def locked(program):
    """Lists of apps while another process locks the database of the counts."""
    gateway = Gateway(program)
    bearer = f"Authorization: Bearer {gateway.token}\r\n"
    lock = sqlite3.connect(f"{gateway.folder}/analytics.sqlite", isolation_level=None, timeout=10)
    lock.execute("BEGIN EXCLUSIVE")
    apps = request("/admin/api/apps", method="GET", Authorization=f"Bearer {gateway.token}")
    setting = Pulse(gateway, "/admin/api/apps/shop/enforcement", lambda: bearer)

    def check():
        milliseconds, count, failed = setting.end()
        lock.close()
        return f"; enforcement p99 {milliseconds:.0f} ms, {count} asked" + expect(
            failed == 0 and milliseconds < 1_000, "settings wait for counts")
    return gateway, lambda: flood(gateway, 8, apps), Pulse(gateway), check


def limited(program):
    """Requests with addresses of very many networks, while one address has used up its limit."""
    gateway = Gateway(program, "--requests-per-second-per-address", "5", "--trusted-proxies", "127.0.0.0/8")

    def forwarded():
        return f"2001:db8:{random.randrange(65536):x}:{random.randrange(65536):x}::1"
    throttled = []

    def check():
        allowed = sum(status == b"200" for status in throttled)
        return f"; {allowed} of {len(throttled)} of a throttled address allowed" + expect(
            allowed <= 25 + 5 * (SECONDS + 2), "others gave it new tokens")

    def run():
        stopped = threading.Event()

        def ask():
            line = request("/livez", method="GET", X_Forwarded_For="198.51.100.9")
            with socket.create_connection(("127.0.0.1", gateway.port), 10) as connection:
                while not stopped.wait(0.02):
                    connection.sendall(line)
                    throttled.append(connection.recv(4096).split(b" ", 2)[1])
        thread = threading.Thread(target=ask)
        thread.start()
        said = flood(gateway, 8, lambda: request("/livez", method="GET", X_Forwarded_For=forwarded()))
        stopped.set()
        thread.join()
        return said
    return gateway, run, Pulse(gateway, headers=lambda: f"X-Forwarded-For: {forwarded()}\r\n"), check


def idle(files):
    def prepare(program):
        gateway = Gateway(program, files=files)
        pulse = Pulse(gateway)

        def run():
            connections = []
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                for number in range(1_300):
                    connection = socket.socket()
                    connection.bind((f"127.0.1.{1 + number % 8}", 0))
                    connection.setblocking(False)
                    connection.connect_ex(("127.0.0.1", gateway.port))
                    connections.append(connection)
                time.sleep(1)
                for connection in connections[:-1_300]:
                    connection.close()
                connections = connections[-1_300:]
            for connection in connections:
                connection.close()
            return "1,300 open all the time"
        return gateway, run, pulse, lambda: ""
    return prepare


def growing():
    """Floods whose cost grows with stored data or open connections, from eight connections or addresses."""
    yield "growing: retention beside a foreign log", retention
    yield "growing: Bloomreach properties", properties
    yield "growing: counts that are locked", locked
    yield "growing: addresses without end", limited
    yield "growing: idle connections, 1,024 files", idle(1_024)
    yield "growing: idle connections, 160 files", idle(160)


def run_growing(program, wanted):
    """Returns whether a flood exceeded its limit."""
    failed = False
    for name, prepare in growing():
        if wanted and not any(word in name for word in wanted):
            continue
        gateway, run, pulse, check = prepare(program)
        try:
            said = run()
            milliseconds, count, unanswered = pulse.end()
            said += check()
            peak = gateway.memory("VmHWM")
            missed = (milliseconds >= 20 or unanswered > count / 100 or peak >= LIMIT_MEGABYTES
                      or "WRONG" in said or gateway.process.poll() is not None)
            failed |= missed
            print(f"{name}: /livez p99 {milliseconds:.1f} ms, {unanswered} of {count} unanswered, peak {peak:.0f} MB; "
                  f"{said}{' MISSED' if missed else ''}", flush=True)
        finally:
            gateway.close()
    return failed


def get(gateway, path):
    ask = urllib.request.Request(f"http://127.0.0.1:{gateway.port}{path}", headers={
        "Authorization": "Bearer " + gateway.token})
    return urllib.request.urlopen(ask, timeout=10).read()


def assets(gateway):
    page = get(gateway, "/admin/").decode()
    return re.findall(r'assets/([A-Za-z0-9_./-]+)"', page)


def main():
    program, *wanted = sys.argv[1:]
    gateway = Gateway(os.path.abspath(program))
    failed = False
    print(f"at rest {gateway.memory('VmRSS'):.0f} MB", flush=True)
    try:
        for name, begin in floods(gateway):
            if wanted and not any(word in name for word in wanted):
                continue
            gateway.forget_peak()
            alive = Honest(gateway)
            event = Honest(gateway, "/v1/batch", fresh(batch(1, 200)), {"X-Write-Key": gateway.key})
            admin = Honest(gateway, "/admin/api/session", headers={"Authorization": "Bearer " + gateway.token})
            for client in (alive, event, admin):
                client.start()
            said = begin()
            reports = [client.report() for client in (alive, event, admin)]
            peak = gateway.memory("VmHWM")
            time.sleep(2)
            dead = gateway.process.poll() is not None
            failed |= peak >= LIMIT_MEGABYTES or dead
            print(f"{name}: peak {peak:.0f} MB, afterwards {gateway.memory('VmRSS'):.0f} MB; {said}", flush=True)
            for what, report in zip(("/livez", "events", "admin API"), reports):
                print(f"    {what}: {report}", flush=True)
    finally:
        gateway.close()
    failed |= run_growing(os.path.abspath(program), wanted)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
