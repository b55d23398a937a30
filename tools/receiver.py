"""An HTTP server that receives webhooks, traces and metrics in tests."""

import http.server
import threading


class Receiver(http.server.ThreadingHTTPServer):
    """Answers POST with what `take(path, body, headers)` returns: a status, or a status with headers and a body."""

    daemon_threads = True
    request_queue_size = 1024  # Many webhooks connect at once; a full queue delays each by seconds.

    def __init__(self, take):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                answer = take(self.path, body, {name.lower(): value for name, value in self.headers.items()})
                status, headers, text = answer if isinstance(answer, tuple) else (answer, {}, b"")
                try:
                    self.send_response(status)
                    for name, value in {"Content-Length": len(text), **headers}.items():
                        self.send_header(name, str(value))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    pass  # The gateway was killed.

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self
