"""Verifies deliveries to webhooks with the reference library of the Standard Webhooks specification, unchanged, and kills
the gateway in the middle of them: every event comes at least once and in order.

Usage: webhooks.py COUNTERSIGN_BINARY [ROUNDS]
"""

import http.server
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from standardwebhooks import Webhook, WebhookVerificationError


class Receiver:
    """Keeps deliveries whose signature is right; `trouble` is how many of 100 it does not take."""

    def __init__(self):
        self.secrets, self.trouble = [], 0
        self.arrived = threading.Condition()
        self.deliveries, self.wrong = [], []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status = receiver.take(body, dict(self.headers.items()))
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/in"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, body, headers):
        headers = {name.lower(): value for name, value in headers.items()}
        problem = None
        try:
            for secret in self.secrets:
                Webhook(secret).verify(body, headers)
            if self.secrets:
                try:
                    Webhook(self.secrets[0]).verify(body + b" ", headers)
                    problem = "a changed body passed"
                except WebhookVerificationError:
                    pass
        except WebhookVerificationError as error:
            problem = str(error)
        status = 500 if random.randrange(100) < self.trouble else 204
        with self.arrived:
            if problem:
                self.wrong.append(problem)
            self.deliveries.append((headers["webhook-id"], status, json.loads(body), headers["webhook-signature"]))
            self.arrived.notify_all()
        return status

    def wait(self, what, holds, seconds=60):
        """Returns once `holds(deliveries)` is true."""
        with self.arrived:
            if not self.arrived.wait_for(lambda: holds(self.deliveries), seconds):
                raise SystemExit(f"webhooks: {what}: not within {seconds} s; {len(self.deliveries)} deliveries")


class Gateway:
    def __init__(self, binary):
        self.binary = binary
        self.folder = tempfile.mkdtemp(prefix="countersign-")
        self.data = self.folder + "/data"
        self.key = self.run("app", "create", "shop").strip()
        self.count = 0

    def run(self, *arguments):
        done = subprocess.run([self.binary, *arguments, "--data", self.data], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{arguments}: {done.stderr}")
        return done.stdout

    def start(self):
        self.process = subprocess.Popen(
            [self.binary, "serve", "--data", self.data, "--port", "0", "--log-level", "error"],
            stdout=subprocess.PIPE, stderr=open(self.folder + "/log", "a"), text=True)
        self.url = self.process.stdout.readline().strip()
        if not re.match(r"http://", self.url):
            raise SystemExit("the gateway did not start")

    def end(self, how):
        self.process.send_signal(how)
        return self.process.wait(timeout=30)

    def track(self, count):
        events = []
        for _ in range(count):
            self.count += 1
            events.append({"type": "track", "event": "Order", "userId": f"user-{self.count % 7}",
                           "messageId": f"m-{self.count}", "properties": {"total": 1.10}})
        body = json.dumps({"batch": events, "writeKey": self.key}).encode()
        request = urllib.request.Request(self.url + "/v1/batch", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status == 200

    def stored(self):
        database = sqlite3.connect(f"file:{self.data}/events.sqlite?mode=ro", uri=True)
        return [row[0] for row in database.execute("SELECT seq FROM event ORDER BY seq")]


def check(what, holds, detail=""):
    if not holds:
        raise SystemExit(f"webhooks: {what}: {detail}")
    print(f"{what}: ok")


def numbers(delivery):
    return [event["seq"] for event in delivery[2].get("events", [])]


def taken(deliveries):
    return {number for delivery in deliveries if delivery[1] == 204 for number in numbers(delivery)}


def create(gateway, url, *arguments):
    made = json.loads(gateway.run("webhook", "create", "shop", url, "--allow-private", "--json", *arguments))
    return made["id"], made["secret"]


def signatures(gateway, receiver):
    webhook, secret = create(gateway, receiver.url, "--batch-size", "10")
    create(gateway, "http://127.0.0.1:1/nobody")
    receiver.secrets = [secret]
    gateway.start()
    gateway.track(25)
    receiver.wait("events come", lambda all: len(taken(all)) == 25)
    check("the reference library verifies each delivery", not receiver.wrong, receiver.wrong)
    check("deliveries are as large as asked for", all(len(numbers(one)) <= 10 for one in receiver.deliveries))
    first = receiver.deliveries[0][2]
    check("the payload is as documented", first["type"] == "events" and first["app"] == "shop"
          and {"seq", "message_id", "received_ms", "verdict", "body"} <= set(first["events"][0]), first)
    renewed = json.loads(gateway.run("webhook", "rotate", "shop", webhook, "--json"))["secret"]
    time.sleep(2)  # a running gateway sees it within a second
    receiver.secrets = [secret, renewed]
    gateway.track(1)
    receiver.wait("an event after the rotation comes", lambda all: len(taken(all)) == 26)
    check("both secrets verify while one replaces the other",
          not receiver.wrong and len(receiver.deliveries[-1][3].split(" ")) == 2, receiver.wrong)
    before = len(receiver.deliveries)
    gateway.run("webhook", "test", "shop", webhook)
    gateway.run("webhook", "replay", "shop", webhook, "--from-seq", "1", "--to-seq", "5")
    receiver.wait("a test and a replay come", lambda all: len(all) >= before + 2)
    test, replay = receiver.deliveries[before][2], receiver.deliveries[before + 1][2]
    check("a test and a replay are marked", test == {"type": "test"} and replay["replay"] is True
          and len(replay["events"]) == 5, (test, replay))
    check("all of that is signed", not receiver.wrong, receiver.wrong)
    attempts = [json.loads(line) for line in gateway.run("webhook", "deliveries", "shop", webhook, "--json").splitlines()]
    check("the attempts are listed", {"events", "replay", "test"} == {one["kind"] for one in attempts}, attempts)
    check("the gateway ends in peace", gateway.end(signal.SIGTERM) == 0)
    check("no secret is in the log", not any(one[6:] in open(gateway.folder + "/log").read()
                                             for one in receiver.secrets))
    gateway.run("webhook", "delete", "shop", webhook)


def kills(gateway, rounds):
    receiver = Receiver()
    receiver.trouble = 20
    _, secret = create(gateway, receiver.url, "--batch-size", "7", "--from", "start")
    receiver.secrets = [secret]
    for _ in range(rounds):
        gateway.start()
        for _ in range(random.randrange(1, 6)):
            gateway.track(random.randrange(1, 40))
        time.sleep(random.random() * 1.5)
        gateway.end(signal.SIGKILL)
    receiver.trouble = 0
    gateway.start()
    stored = gateway.stored()
    receiver.wait("every event comes", lambda all: taken(all) >= set(stored), 120)
    gateway.end(signal.SIGTERM)
    place = {number: index for index, number in enumerate(stored)}
    reached = -1
    for delivery in receiver.deliveries:
        found = [place[number] for number in numbers(delivery)]
        check_order = found == list(range(found[0], found[-1] + 1)) and found[0] <= reached + 1
        if not check_order:
            raise SystemExit(f"webhooks: out of order: {found[0]} to {found[-1]} after {reached}")
        if delivery[1] == 204:
            reached = max(reached, found[-1])
    ids = {}
    for delivery in receiver.deliveries:
        ids.setdefault(delivery[0], set()).add(tuple(numbers(delivery)))
    check("one id is one batch, however often it is tried", all(len(batches) == 1 for batches in ids.values()))
    again = sum(len(numbers(one)) for one in receiver.deliveries if one[1] == 204) - len(stored)
    check(f"{rounds} kills: {len(stored)} events at least once and in order, {again} of them twice",
          not receiver.wrong, receiver.wrong)


def main(binary, rounds):
    gateway = Gateway(binary)
    try:
        signatures(gateway, Receiver())
        kills(gateway, rounds)
    finally:
        if gateway.process.poll() is None:
            gateway.process.kill()
        shutil.rmtree(gateway.folder)


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10)
