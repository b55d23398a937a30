#!/usr/bin/env python3
"""Signs a short-lived token for the user who is logged in: token_backend.py PRIVATE_KEY PORT"""

import http.server
import json
import sys
import time
import urllib.parse

import jwt

LIFETIME_SECONDS = 3600


def signed_token(private_key: str, user: str) -> str:
    now = int(time.time())
    return jwt.encode({"sub": user, "iat": now, "exp": now + LIFETIME_SECONDS}, private_key, algorithm="RS256")


class Handler(http.server.BaseHTTPRequestHandler):
    private_key = ""

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        # In your backend: the user of your own session. Whoever may choose the user here may be anybody.
        user = urllib.parse.parse_qs(url.query).get("user", [""])[0]
        if url.path != "/token" or not user:
            self.send_error(404)
            return
        body = json.dumps({"token": signed_token(self.private_key, user)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        Handler.private_key = file.read()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
