"""Measures the p99 of /livez on persistent and on new connections during floods: livez.py PROGRAM [SECONDS].

The senders share the processors with the gateway. So each flood is also sent to a second gateway for comparison: "beside" is
the p99 of the first gateway during that flood.
"""

import ssl
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from socket import create_connection
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent.parent))
from tools.common import certify, workshop  # noqa: E402
from tools.gateway import Gateway  # noqa: E402
from tools.torture.floods import flood, livez, message  # noqa: E402

AIM = 10
context = cache(lambda certificate: ssl.create_default_context(cafile=certificate))


def connect(gateway, number):
    connection = create_connection(("127.0.0.1", gateway.port), 30, (f"127.0.{100 + number // 100}.1", 0))
    return context(gateway.certificate).wrap_socket(connection, server_hostname="127.0.0.1") if gateway.certificate else connection


def ask(connection, **fields):
    connection.sendall(livez(**fields))
    assert connection.recv(4096).startswith(b"HTTP/1.1 200"), "a request failed"


def drip(gateway, count, payload, seconds):
    """Sends the payload repeatedly over `count` connections, one byte to each in turn."""
    connections, rounds, end = [connect(gateway, number) for number in range(count)], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for connection in list(connections):
            try:
                connection.send(payload[rounds % len(payload):][:1])
            except OSError:
                connections.remove(connection)
        rounds += 1
    return f"{rounds} bytes each, {count - len(connections)} connections closed"


def handshakes(gateway, count, _, seconds):
    """`count` threads complete TLS handshakes."""
    end = time.monotonic() + seconds

    def repeat(number):
        done = 0
        while time.monotonic() < end:
            connect(gateway, 100 * number).close()
            done += 1
        return done

    with ThreadPoolExecutor(count) as pool:
        return f"{sum(pool.map(repeat, range(count)))} handshakes"


def hello():
    """Returns a TLS ClientHello."""
    sent = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    return sent.read()


# The gateway closes a connection at the 501st one-byte chunk of a body.
CHUNKS = message("/v1/batch", Transfer_Encoding="chunked") + b"1\r\n \r\n" * 500 + b"0\r\n\r\n"
# Name, whether over TLS, function, number of connections or threads, payload, and further arguments of the function.
FLOODS = [
    ("10,000 idle connections", False, flood, 10_000, livez(), {"again": False}),
    ("pipelines of 1,000 requests", False, flood, 8, livez() * 1_000, {}),
    ("bodies in one-byte chunks", False, flood, 8, CHUNKS, {}),
    ("slow senders of one-byte chunks", False, drip, 1_000, CHUNKS, {}),
    ("slow senders of heads", False, drip, 1_000, livez()[:-2] + b"X-Long: " + b"x" * 15_000, {}),
    ("slow readers", False, flood, 4_000, message("/openapi.json", method="GET") * 20, {"reads": False, "buffer": 4096}),
    ("complete handshakes", True, handshakes, 16, b"", {}),
    ("handshakes abandoned at once", True, flood, 400, hello(), {"resets": True}),
    ("handshakes with a second ClientHello", True, flood, 400, hello(), {}),
    ("10,000 handshakes that stop", True, flood, 10_000, hello()[:100], {"again": False}),
]


def p99(gateway, seconds):
    """The p99 on persistent and on new connections, in milliseconds."""
    kept, times, end = [connect(gateway, number) for number in range(8)], [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        ask(kept[len(times) % len(kept)])
        middle = time.monotonic()
        with connect(gateway, 100 + len(times) % 10_000) as connection:
            ask(connection, Connection="close")
        times.append((middle - began, time.monotonic() - middle))
        time.sleep(0.001)
    for connection in kept:
        connection.close()
    return [sorted(column)[len(times) * 99 // 100] * 1000 for column in zip(*times)]


def start(stack, program, tls):
    folder = workshop()
    flags = ["--connections", 11_000, "--requests-per-second-per-address", 0]
    certificate = None
    if tls:
        certificate, key = certify(folder, "localhost")
        flags += ["--tls-certificate", certificate, "--tls-key", key]
    gateway = stack.enter_context(Gateway(program, folder, flags=flags, level="off")).start()
    # Omits the process object, which cannot be passed to the sender.
    return SimpleNamespace(port=gateway.port, certificate=certificate)


def main(program, seconds):
    with ExitStack() as stack:
        sender = stack.enter_context(ProcessPoolExecutor(1))
        gateways = {tls: [start(stack, program, tls) for _ in range(2)] for tls in (False, True)}
        print(f"aim: p99 of /livez at most {AIM} ms\n{'flood':38}{'kept':>9}{'beside':>9}{'new':>9}{'beside':>9}")
        for tls, (gateway, _) in gateways.items():
            kept, new = p99(gateway, seconds)
            print(f"{'none over TLS' if tls else 'none':38}{kept:9.1f}{'':9}{new:9.1f}")
        for name, tls, function, count, payload, more in FLOODS:
            results = []
            for target in reversed(gateways[tls]):
                sent = sender.submit(function, target, count, payload, seconds + 4, **more)
                time.sleep(3)  # Until all connections are open.
                results += [p99(gateways[tls][0], seconds), sent.result()]
            (beside, new_beside), _, (kept, new), said = results
            is_above = max(kept, new) > AIM
            print(f"{name:38}{kept:9.1f}{beside:9.1f}{new:9.1f}{new_beside:9.1f}{'  above the aim;' * is_above}  {said}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
