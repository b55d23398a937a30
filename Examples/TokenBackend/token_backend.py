#!/usr/bin/env python3
"""Signs a short-lived token for the user who is logged in: token_backend.py PRIVATE_KEY PORT

With CUSTOMER_TOKEN_SECRET_FILE and CUSTOMER_TOKEN_KEY_ID, a private key of a Bloomreach project, also customer tokens.
"""

import http.server
import json
import os
import sys
import time
import urllib.parse

import jwt

LIFETIME_SECONDS = 3600


def signed_token(private_key: str, user: str) -> str:
    now = int(time.time())
    return jwt.encode({"sub": user, "iat": now, "exp": now + LIFETIME_SECONDS}, private_key, algorithm="RS256")


def customer_token(secret: str, key_id: str, registered: str) -> str:
    """For Bloomreach's App Inbox: sub is an object of the customer's ids, signed with HS256."""
    claims = {"sub": {"registered": registered}, "exp": int(time.time()) + LIFETIME_SECONDS}
    # PyJWT's encode accepts only a text as sub, so this signs the encoded claims.
    return jwt.api_jws.encode(
        json.dumps(claims).encode(), secret, algorithm="HS256", headers={"typ": "JWT", "kid": key_id})


class Handler(http.server.BaseHTTPRequestHandler):
    private_key = ""
    customer_secret = ""
    customer_key_id = ""

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        # In your backend, take the user from your own session. A client that chooses the user can be any user.
        user = urllib.parse.parse_qs(url.query).get("user", [""])[0]
        if url.path == "/token" and user:
            token = signed_token(self.private_key, user)
        elif url.path == "/customer-token" and user and self.customer_secret:
            token = customer_token(self.customer_secret, self.customer_key_id, user)
        else:
            self.send_error(404)
            return
        body = json.dumps({"token": token}).encode()
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
    if "CUSTOMER_TOKEN_SECRET_FILE" in os.environ:
        with open(os.environ["CUSTOMER_TOKEN_SECRET_FILE"], encoding="utf-8") as file:
            Handler.customer_secret = file.read().strip()
        Handler.customer_key_id = os.environ["CUSTOMER_TOKEN_KEY_ID"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
