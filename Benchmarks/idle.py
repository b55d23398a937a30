"""Measures the memory for an idle connection after a request, without and with TLS: idle.py PROGRAM [CONNECTIONS]."""

import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from tools.gateway import Gateway  # noqa: E402


def connect(gateway, number, context):
    connection = socket.create_connection(("127.0.0.1", gateway.port), 30, (f"127.0.{1 + number // 200}.1", 0))
    if context:
        connection = context.wrap_socket(connection, server_hostname="localhost")
    connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connection.recv(4096).startswith(b"HTTP/1.1 200"), "a request failed"
    return connection


def measure(name, program, count, context, flags):
    with Gateway(program, flags=["--connections", count + 100, "--idle-seconds", "600s", *flags], level="off") as gateway:
        gateway.start()
        first = [connect(gateway, number, context) for number in range(100)]
        before = gateway.memory("RssAnon")
        rest = [connect(gateway, number, context) for number in range(100, count)]
        time.sleep(2)
        cost = (gateway.memory("RssAnon") - before) * 1000 / len(rest)
        # Connections that the gateway has closed would cost nothing.
        for connection in first + rest:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200"), "a connection was closed"
            connection.close()
        print(f"{name}: {count} idle connections, {cost:.1f} KB each")


def main(program, count):
    folder = Path("/tmp") / f"countersign-idle-{time.time_ns()}"
    folder.mkdir()
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                        "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"], check=True, capture_output=True)
        measure("HTTP", program, count, None, [])
        for version in ("TLSv1_2", "TLSv1_3"):
            context = ssl.create_default_context(cafile=folder / "certificate.pem")
            context.check_hostname = False
            context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
            measure(version, program, count, context, ["--tls-certificate", folder / "certificate.pem", "--tls-key", folder / "key.pem"])
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
