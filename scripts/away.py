"""Stores events for an hour while a stream is away and a webhook never answers, and prints what that does to the gateway: its memory,
what storing takes, and another webhook's delay, for each twelfth of the time. Then the stream comes back and must have everything
once and in order.

    scripts/away.py --countersign PROGRAM --nats-server PROGRAM [--minutes N]

Exit status: 0 all was good, 1 otherwise.
"""
import argparse
import http.server
import json
import shutil
import signal
import statistics
import tempfile
import threading
import time

import streams as stream

BATCH, BATCHES_PER_SECOND = 5, 20


class Receivers(http.server.ThreadingHTTPServer):
    """`/silent` takes a request and never answers it; everything else is answered at once, and its events' delays are kept."""
    daemon_threads = True

    def __init__(self):
        self.tried, self.events, self.delays, self.ended = 0, 0, [], threading.Event()
        receivers = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/silent":
                    receivers.tried += 1
                    receivers.ended.wait()
                    return
                now = time.time() * 1000
                found = json.loads(body).get("events", [])
                receivers.events += len(found)
                receivers.delays += [now - event["received_ms"] for event in found]
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def part(gateway, receivers, seconds):
    """Sends for that long; returns how long each request took in milliseconds."""
    took, began = [], time.monotonic()
    receivers.delays.clear()
    while (now := time.monotonic()) < began + seconds:
        gateway.track(BATCH)
        after = time.monotonic()
        took.append((after - now) * 1000)
        time.sleep(max(0, 1 / BATCHES_PER_SECOND - (after - now)))
    return took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--countersign", required=True)
    parser.add_argument("--nats-server", required=True)
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    folder, receivers = tempfile.mkdtemp(prefix="countersign-"), Receivers()
    server = stream.Server(options.nats_server, folder, always=False)
    gateway = stream.Gateway(options.countersign, folder)
    try:
        server.start()
        gateway.start()
        gateway.run("sink", "create", "shop", "out", f"nats://127.0.0.1:{server.port}", stream.STREAM)
        for name in ("silent", "good"):
            gateway.run("webhook", "create", "shop", f"http://127.0.0.1:{receivers.server_port}/{name}", "--allow-private")
        gateway.track(BATCH)
        stream.wait("the stream has the first events", lambda: stream.count(server.port) == BATCH)
        server.kill()
        memory = []
        for number in range(12):
            took = sorted(part(gateway, receivers, options.minutes * 5))
            delays = sorted(receivers.delays)
            memory.append(gateway.memory())
            print(f"{options.minutes / 12 * (number + 1):.0f} min: {gateway.count} events, {memory[-1]} MB; a request "
                  f"{statistics.median(took):.1f} ms, p99 {took[len(took) * 99 // 100]:.1f}; the other webhook "
                  f"{statistics.median(delays):.0f} ms after receipt, p99 {delays[len(delays) * 99 // 100]:.0f}; "
                  f"the silent one tried {receivers.tried} times", flush=True)
        stream.check("memory is flat after the first twelfth", max(memory[1:]) - memory[0] < 15, memory)
        sink = gateway.show()
        stream.check("the sink says that it fails, and how far behind it is",
                     sink["state"] == "failing" and sink["lag_events"] == gateway.count - BATCH, sink)
        used, began = gateway.cpu(), time.monotonic()
        server.start()
        stream.wait("the stream has everything", lambda: stream.count(server.port) >= gateway.count, 600)
        took = time.monotonic() - began
        print(f"{gateway.count - BATCH} events are there {took:.1f} s after the server is back, its pause included; "
              f"{(gateway.cpu() - used) / gateway.count * 1e6:.1f} µs of processor each in the gateway; "
              f"{gateway.memory()} MB", flush=True)
        stored, found = gateway.stored(), stream.ids(stream.published(server.port))
        stream.check("everything is there once and in order", stored == found, stream.differences(stored, found))
        stream.wait("the other webhook has everything", lambda: receivers.events >= gateway.count)
        receivers.ended.set()
        gateway.kill(signal.SIGTERM)
    finally:
        gateway.kill()
        server.kill()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
