#!/usr/bin/env python3
"""Kills the gateway and the consumers of its events under load, and compares what was consumed with what is stored.

Usage: scripts/torture-consumers.py [--rounds N] [--countersign PATH]

A round runs clients that store events and send again what was not acknowledged, and workers of three consumers, which are
processes of their own: `one` has one worker, `two` has four partitions and two workers, `back` is sent backwards in the
middle. Gateway and workers are killed with SIGKILL and started again. In the end everything is consumed, and the round is good when

  - each stored event was consumed by each consumer, and nothing else was
  - each user's events were consumed in the order of storing, each the first time that it was seen
  - no event was confirmed twice by two leases of one consumer, except where it was sent backwards
  - what `back` was sent backwards over was consumed again

Exit status: 0 all rounds were good, 1 otherwise, 2 it could not be tried.
"""

import argparse
import base64
import http.client
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
USERS = 12
CONSUMERS = {"one": (1, 1), "two": (4, 2), "back": (1, 1)}


def ask(port, token, method, path, body=None, timeout=15):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, "/v1/apps/shop/" + path, None if body is None else json.dumps(body),
                           {"Authorization": "Bearer " + token})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    finally:
        connection.close()


# MARK: A worker, which is a process of its own


def work(port, token, consumer, journal):
    """Consumes until it is killed. The journal has a line for each lease that was worked off and one for each that was
    confirmed; it is written before anything is confirmed, so it knows of everything that was."""
    random.seed()
    with open(journal, "a", buffering=1) as file:
        while True:
            try:
                status, answer = ask(port, token, "POST", f"consumers/{consumer}/poll",
                                     {"limit": random.randint(1, 40), "wait": 2, "lease_seconds": 5})
                lease = answer.get("lease") if status == 200 else None
                if not lease:
                    if status != 200:
                        time.sleep(0.05)
                    continue
                events = [(event["seq"], event["user_id"], event["message_id"]) for event in answer["events"]]
                file.write(json.dumps({"at": time.monotonic_ns(), "lease": lease["id"], "events": events}) + "\n")
                if random.random() < 0.05:
                    # Whoever is slow loses the lease.
                    time.sleep(random.choice([0.2, 6]))
                body = {"lease": lease["id"]}
                done = events
                if random.random() < 0.2:
                    part = random.randrange(len(events))
                    body["position"] = answer["events"][part]["position"]
                    done = events[:part + 1]
                    if done == events:
                        del body["position"]
                status, _ = ask(port, token, "POST", f"consumers/{consumer}/ack", body)
                if status == 200:
                    file.write(json.dumps({"at": time.monotonic_ns(), "confirmed": [seq for seq, _, _ in done]}) + "\n")
                    if done != events:
                        ask(port, token, "POST", f"consumers/{consumer}/release", {"lease": lease["id"]})
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.02)


# MARK: A round


class Gateway:
    def __init__(self, program, data, port, log):
        self.arguments = [program, "serve", "--data", str(data), "--port", str(port), "--log-level", "off"]
        self.log = log
        self.start()

    def start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, stderr=log, text=True)
        if not self.process.stdout.readline().strip():
            raise SystemExit(f"torture: the gateway does not start; see {self.log}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=60)
        self.process.stdout.close()


class Load:
    """Clients that send batches, and each again until it is acknowledged."""

    def __init__(self, port, key):
        self.port, self.stopping = port, threading.Event()
        self.authorization = "Basic " + base64.b64encode(f"{key}:".encode()).decode()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(3)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.stopping.is_set():
            events = [{"type": "track", "event": "Tortured", "messageId": f"{random.getrandbits(96):024x}",
                       "userId": f"user-{random.randrange(USERS)}"} for _ in range(random.randint(1, 4))]
            body = json.dumps({"batch": events})
            while True:
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                    connection.request("POST", "/v1/batch", body, {"Authorization": self.authorization})
                    status = connection.getresponse().status
                    connection.close()
                    if status == 200:
                        break
                except (OSError, http.client.HTTPException):
                    pass
                time.sleep(0.02)
            time.sleep(0.004)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=60)


class Workers:
    def __init__(self, folder, port, token):
        self.folder, self.port, self.token = folder, port, token
        self.running, self.number = [], 0
        for consumer, (_, count) in CONSUMERS.items():
            for _ in range(count):
                self.start(consumer)

    def start(self, consumer):
        self.number += 1
        journal = self.folder / f"{consumer}-{self.number}.journal"
        process = subprocess.Popen(
            [sys.executable, __file__, "--worker", str(self.port), consumer, str(journal)], stdin=subprocess.PIPE,
            text=True)
        process.stdin.write(self.token + "\n")
        process.stdin.close()
        self.running.append((consumer, process))

    def kill_one(self):
        consumer, process = self.running.pop(random.randrange(len(self.running)))
        process.kill()
        process.wait()
        self.start(consumer)

    def stop(self):
        for _, process in self.running:
            process.kill()
            process.wait()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what, body, seconds=600):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if body():
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.1)
    raise SystemExit(f"torture: {what} took more than {seconds} s")


def furthest(folder, consumer):
    """The last event that a consumer has confirmed, as far as its workers know."""
    confirmed = [0]
    for journal in folder.glob(f"{consumer}-*.journal"):
        for line in journal.read_text().splitlines():
            try:
                confirmed += json.loads(line).get("confirmed", [])
            except ValueError:
                pass  # half a line: it is being written
    return max(confirmed)


def one_round(program, folder, seconds):
    data, port = folder / "data", free_port()

    def command(*arguments):
        return subprocess.run([program, *arguments, "--data", str(data)], check=True, capture_output=True,
                              text=True).stdout.strip()

    key = command("app", "create", "shop")
    token = command("admin", "token", "create", "--name", "torture", "--scopes", "reader", "--app", "shop")
    gateway = Gateway(program, data, port, folder / "gateway.log")
    for consumer, (partitions, _) in CONSUMERS.items():
        status, answer = ask(port, token, "POST", "consumers", {"name": consumer, "partitions": partitions})
        if status != 201:
            raise SystemExit(f"torture: {consumer} was not made: {answer}")
    load, workers = Load(port, key), Workers(folder, port, token)
    kills, sought = Counter(), None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(random.uniform(0.1, 0.7))
        if random.random() < 0.4:
            gateway.kill()
            gateway.start()
            kills["gateway"] += 1
        else:
            workers.kill_one()
            kills["worker"] += 1
        if sought is None and time.monotonic() > end - seconds / 2:
            first = ask(port, token, "GET", "events?limit=30")[1]["events"]
            # Only backwards: a seek ahead would pass over what nobody has read.
            if first and first[-1]["seq"] < furthest(folder, "back"):
                # Before it: a worker may have its next events before the answer is here.
                began = time.monotonic_ns()
                moved, _ = ask(port, token, "POST", "consumers/back/seek", {"position": first[-1]["position"]})
                if moved == 200:
                    sought = (first[-1]["seq"], began)
    load.stop()
    for consumer in CONSUMERS:
        until(f"the rest of {consumer}",
              lambda: ask(port, token, "GET", f"consumers/{consumer}")[1].get("lag_events") == 0)
    workers.stop()
    gateway.kill()
    return kills, sought, account(data, folder, sought)


def account(data, folder, sought):
    database = sqlite3.connect(f"file:{data}/events.sqlite?mode=rwc", uri=True)
    stored = {row[0]: row[1:] for row in database.execute("SELECT seq, user_id, message_id FROM event")}
    database.close()
    problems = [] if stored else ["nothing was stored"]
    for consumer in CONSUMERS:
        seen, confirmed, again = [], Counter(), set()
        for journal in folder.glob(f"{consumer}-*.journal"):
            for line in journal.read_text().splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # the last line of one that was killed
                if "events" in entry:
                    seen += [(entry["at"], index, *event) for index, event in enumerate(entry["events"])]
                else:
                    confirmed.update(entry["confirmed"])
        seen.sort()
        first, last = {}, defaultdict(int)
        resumed = min((seq for seq in stored if sought and seq > sought[0]), default=None)
        for at, _, seq, user, message in seen:
            # From the event on that it was sent back to.
            if sought and at > sought[1] and (again or seq == resumed):
                again.add(seq)
            if stored.get(seq) != (user, message):
                problems.append(f"{consumer}: {seq} was never stored so")
            if seq in first:
                continue
            first[seq] = at
            if seq < last[user]:
                problems.append(f"{consumer}: {seq} of {user} came after {last[user]}")
            last[user] = seq
        missing = sorted(set(stored) - set(first))
        if missing:
            problems.append(f"{consumer}: {len(missing)} of {len(stored)} never came, such as {missing[:3]}")
        twice = [seq for seq, count in confirmed.items() if count > 1]
        if consumer != "back" and twice:
            problems.append(f"{consumer}: {len(twice)} were confirmed twice, such as {sorted(twice)[:3]}")
        if consumer == "back" and sought:
            lost = {seq for seq in stored if seq > sought[0]} - again
            if lost:
                problems.append(f"back: {len(lost)} did not come again")
    return len(stored), problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15, help="how long a round kills")
    parser.add_argument("--countersign", default=str(SCRIPTS.parent / ".build/debug/countersign-cli"))
    parser.add_argument("--worker", nargs=3, metavar=("PORT", "CONSUMER", "JOURNAL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        port, consumer, journal = options.worker
        return work(int(port), sys.stdin.readline().strip(), consumer, journal)
    if not os.access(options.countersign, os.X_OK):
        print(f"torture: there is no {options.countersign}; build it first", file=sys.stderr)
        return 2
    good = True
    for number in range(options.rounds):
        folder = Path(tempfile.mkdtemp(prefix="countersign-consumers-"))
        kills, sought, (stored, problems) = one_round(options.countersign, folder, options.seconds)
        good = good and not problems
        print(f"consumers {number + 1}: {stored} events, gateway killed {kills['gateway']} times, workers "
              f"{kills['worker']} times, {'sent back' if sought else 'not sent back'}"
              + "".join(f"; {problem}" for problem in problems[:5]) + (": BAD" if problems else ": good"), flush=True)
        if not problems:
            shutil.rmtree(folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
