#!/usr/bin/env python3
"""Floods a gateway with default settings, one way after another, and measures its resident memory.

    swift build -c release --product countersign-cli
    scripts/floods.py .build/release/countersign-cli [flood …]

Ends with 1 when the gateway held 300 MB or more at any moment, or stopped answering. Linux only: the senders have
addresses of 127.0.0.0/8, a hundred connections each, and the memory is read from /proc.
"""

import gzip
import json
import os
import re
import selectors
import shutil
import socket
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
    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="countersign-floods-")
        environment = {**os.environ, "COUNTERSIGN_DATA": self.folder}

        def run(*arguments):
            return subprocess.run(
                [program, *arguments], env=environment, check=True, capture_output=True, text=True
            ).stdout.strip()

        self.key = run("app", "create", "shop")
        self.token = run("admin", "token", "create", "--name", "floods")
        self.process = subprocess.Popen(
            [program, "serve", "--port", "0", "--log-level", "off"], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
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
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
