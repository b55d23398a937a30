#!/usr/bin/env python3
"""A receiver of webhooks that stores each event once.

    WEBHOOK_SECRETS="whsec_…" webhook_receiver.py 8080 events.sqlite

WEBHOOK_SECRETS has one secret, or two separated by a space during a rotation. Run the receiver behind a proxy with HTTPS.
"""

import http.server
import json
import os
import sqlite3
import sys

from countersign_consumer import WebhookError, verify_webhook

LONGEST_BODY = 16 * 1024 * 1024
SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    app TEXT NOT NULL, seq INTEGER NOT NULL, message_id TEXT NOT NULL, user_id TEXT, verdict TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (app, seq));
"""


def keep(path, delivery):
    """Stores the events of a delivery. Events that are already stored do not change."""
    database = sqlite3.connect(path, timeout=10)
    try:
        with database:
            database.executemany(
                "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?)",
                [(delivery["app"], event["seq"], event["message_id"], event["user_id"], event["verdict"],
                  json.dumps(event["body"])) for event in delivery.get("events", [])])
    finally:
        database.close()


class Receiver(http.server.BaseHTTPRequestHandler):
    timeout = 15

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST_BODY:
            return self.answer(413)
        body = self.rfile.read(int(length))
        try:
            delivery = verify_webhook(self.server.secrets, self.headers, body)
        except WebhookError as error:
            print(f"rejected: {error}", file=sys.stderr, flush=True)
            return self.answer(401)
        try:
            keep(self.server.path, delivery)
        except sqlite3.Error as error:
            print(f"not stored: {error}", file=sys.stderr, flush=True)
            return self.answer(503)  # the gateway retries
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def log_message(self, *_):
        pass


def serve(port, path, secrets):
    database = sqlite3.connect(path)
    database.executescript(SCHEMA)
    database.close()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    server.path, server.secrets = path, secrets
    return server


if __name__ == "__main__":
    with serve(int(sys.argv[1]), sys.argv[2], os.environ["WEBHOOK_SECRETS"].split()) as running:
        print(f"listening on http://127.0.0.1:{running.server_port}", flush=True)
        running.serve_forever()
