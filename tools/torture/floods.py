"""Floods a gateway that has default settings. Its memory must stay below 300 MB. The senders have addresses of 127.0.0.0/8, with
100 connections each.
"""

import contextlib
import gzip
import json
import multiprocessing
import os
import re
import selectors
import socket
import struct
import time
from collections import Counter

from ..common import on_linux
from ..gateway import Gateway
from .trial import say

MEGABYTES, PER_ADDRESS = 300, 100
BODY, ID = 4 * 1024 * 1024, b"0123456789abcdef"


def message(path, body=b"", method="POST", length=None, **fields):
    lines = [f"{method} {path} HTTP/1.1", "Host: a"] + [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    if length is not None or body:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def batch(count, size):
    return json.dumps({"batch": [{"type": "track", "messageId": f"{ID.decode()}-{number}", "anonymousId": "a", "event": "E",
                                  "properties": {"t": "x" * size}} for number in range(count)]}).encode()


def fresh(payload):
    """Returns a function that returns the payload with new message ids, so that its events are not duplicates."""
    return lambda: payload.replace(ID, os.urandom(8).hex().encode())


class Client:
    """Sends a request repeatedly over new connections, in another process, so that the flood's sender does not delay it."""

    def __init__(self, gateway, payload):
        self.port, self.payload = gateway.port, payload
        self.stopped, self.results = multiprocessing.Event(), multiprocessing.Queue()
        self.process = multiprocessing.Process(target=self.run, daemon=True)
        self.process.start()

    def run(self):
        times, statuses = [], Counter()
        while not self.stopped.wait(0.02):
            began, status = time.monotonic(), 0
            with contextlib.suppress(OSError, IndexError, ValueError):
                with socket.create_connection(("127.0.0.1", self.port), 10, ("127.0.200.1", 0)) as connection:
                    connection.sendall(self.payload().replace(b"Host: a", b"Host: a\r\nConnection: close", 1))
                    status = int(connection.recv(64).split()[1])
            times.append(time.monotonic() - began)
            statuses[status] += 1
        self.results.put((sorted(times) or [0], statuses))

    def end(self):
        """Stops the process. Returns the p99 in milliseconds, and the count of each status; status 0 is no response."""
        self.stopped.set()
        times, statuses = self.results.get(timeout=30)
        self.process.join()
        return times[int((len(times) - 1) * 0.99)] * 1000, statuses


def livez(**fields):
    return message("/livez", method="GET", **fields)


def flood(gateway, count, payload, seconds, reads=True, again=True, buffer=None, resets=False):
    """`count` connections send the payload for `seconds`. With `again`, a closed connection is opened again and a payload repeated.

    `reads`: whether senders read responses. `buffer`: bytes of the receive buffer. `resets`: whether senders reset after sending.
    """
    selector, silent, totals = selectors.DefaultSelector(), [], Counter()
    make = payload if callable(payload) else lambda: payload

    def begin(number):
        connection = socket.socket()
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        if resets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        address = number // PER_ADDRESS
        connection.bind((f"127.0.{1 + address // 250}.{1 + address % 250}", 0))
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", gateway.port))
        totals["opened"] += 1
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, [number, memoryview(make())])

    def restart(connection, state):
        selector.unregister(connection)
        connection.close()
        if again and time.monotonic() < end:
            begin(state[0])

    end = time.monotonic() + seconds
    for number in range(count):
        begin(number)
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
                        restart(connection, state)
                        continue
                    if not state[1]:
                        selector.modify(connection, selectors.EVENT_READ, state)
                if events & selectors.EVENT_READ:
                    if not connection.recv(65536):
                        raise ConnectionResetError
                    totals["answers"] += 1
                    if again and not state[1]:
                        state[1] = memoryview(make())
                        selector.modify(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, state)
            except OSError:
                totals["closed"] += 1
                restart(connection, state)
    for connection in [key.fileobj for key in selector.get_map().values()] + silent:
        connection.close()
    selector.close()
    return ", ".join(f"{totals[name]} {name}" for name in ("opened", "answers", "closed"))


def requests(gateway, bearer):
    """Returns for each flood the number of connections, the payload, and further arguments of `flood`."""
    key = {"X_Write_Key": gateway.key}
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    filler = message("/v1/batch", gzip.compress(os.urandom(42_000) + b" " * (BODY - 50_000), 9), Content_Encoding="gzip")
    events = fresh(message("/v1/batch", batch(900, 4_000), **key))
    page = gateway.ask("GET", "/admin/", headers=bearer)[1]
    assets = [f"/admin/assets/{name}" for name in re.findall(r'assets/([A-Za-z0-9_./-]+)"', page)]
    files = [max(assets, key=lambda file: len(gateway.ask("GET", file)[1])), "/openapi.json"]
    sign_in = json.dumps({"name": "n" * 1000, "password": "p" * 1000}).encode()
    slow = {"reads": False, "buffer": 4096}
    return {
        "bodies that stop before their end": (1000, message("/v1/batch", b" " * (BODY * 15 // 16), length=BODY), {}),
        "chunked bodies that stop": (1000, message("/v1/batch", Transfer_Encoding="chunked") + chunk * 60, {}),
        "small bodies that stop": (4000, message("/v1/batch", b" " * 60_000, length=65_000), {}),
        "gzip bodies": (500, filler, {}),
        "gzip bombs": (500, message("/v1/batch", gzip.compress(b" " * (BODY - 1000), 9), Content_Encoding="gzip"), {}),
        "dense JSON": (500, message("/v1/batch", b'{"batch":[' + b"{}," * (BODY // 3 - 10) + b"{}]}", **key), {}),
        "dense numbers": (500, message("/v1/batch", b'{"batch":[' + b"1," * (BODY // 2 - 10) + b"1]}", **key), {}),
        "events": (500, events, {}),
        "large events": (500, fresh(message("/v1/batch", batch(7, 510_000), **key)), {}),
        "events whose senders reset": (500, events, {"resets": True}),
        "gzip bodies whose senders reset": (500, filler, {"resets": True}),
        "headers that never end": (5000, b"GET /livez HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 15_000, {}),
        "idle connections": (5000, livez(), {"again": False}),
        **{f"slow readers of {file}": (4000, message(file, method="GET") * 20, slow) for file in files},
        "live streams without a reader": (1000, message("/admin/api/live", method="GET", **bearer), slow),
        "sign-ins": (400, message("/admin/api/session", sign_in), {}),
        "large admin bodies": (500, message("/admin/api/session", b'{"name":"' + b"n" * 4_000_000 + b'"}'), {}),
    }


def floods(options, rounds):
    """Many connections that send too much, too slowly or never read. `--rounds` is the duration of each flood in seconds."""
    on_linux("the memory of a process")
    with Gateway(options.countersign, level="off") as gateway:
        gateway.app()
        bearer = gateway.bearer()
        gateway.start()
        return all([one_flood(gateway, bearer, name, rounds, *flood) for name, flood in requests(gateway, bearer).items()])


def one_flood(gateway, bearer, name, seconds, count, payload, how):
    with open(f"/proc/{gateway.process.pid}/clear_refs", "w") as file:
        file.write("5")  # Resets VmHWM, the peak of the memory (proc(5)).
    clients = {"/livez": Client(gateway, livez), "events": Client(gateway, fresh(message("/v1/batch", batch(1, 200), X_Write_Key=gateway.key))),
               "admin API": Client(gateway, lambda: message("/admin/api/session", method="GET", **bearer))}
    said = flood(gateway, count, payload, seconds, **how)
    reports = "; ".join(f"{what} p99 {client[0]:.0f} ms, {dict(client[1])}" for what, client in (
        (what, client.end()) for what, client in clients.items()))
    if not gateway.is_running:
        return say(name, said, ["the gateway ended"])
    peak = gateway.memory("VmHWM")
    time.sleep(2)
    return say(name, f"peak {peak:.0f} MB, afterwards {gateway.memory():.0f} MB; {said}; {reports}", ["too much memory"] * (peak >= MEGABYTES))
