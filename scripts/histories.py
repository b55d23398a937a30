"""Devices that send to any of several gateways and readers that read from any, with what each has seen, and the account of it."""

import base64
import http.client
import json
import random
import threading
import time
import uuid
from collections import Counter

USERS = 12


def request(gateway, method, path, body=None, headers=None, timeout=15):
    """The status and the answer of a gateway. Throws OSError or HTTPException when there is none."""
    connection = http.client.HTTPConnection(gateway.host, gateway.port, timeout=timeout)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers or {})
        answer = connection.getresponse()
        data = answer.read()
        try:
            return answer.status, json.loads(data or b"{}")
        except ValueError:
            return answer.status, {}
    finally:
        connection.close()


def message_id():
    """As the SDK makes them (UUIDv7), and now and then without a time of its own, as others do."""
    if random.random() < 0.2:
        return f"{random.getrandbits(96):024x}"
    value = (int(time.time() * 1000) << 80) | (7 << 76) | (random.getrandbits(12) << 64) | (2 << 62) | random.getrandbits(62)
    return str(uuid.UUID(int=value))


class Load:
    """Devices. Each sends batches of one to four events to a gateway, and a batch that was not acknowledged again, to another.
    With `share` one in so many batches is sent by two devices at once."""

    def __init__(self, gateways, key, threads=6, timeout=15, share=0.05):
        self.gateways, self.timeout, self.share = gateways, timeout, share
        self.headers = {"Authorization": "Basic " + base64.b64encode(f"{key}:".encode()).decode()}
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.sent, self.acknowledged, self.answers = set(), set(), Counter()
        self.last = time.monotonic()
        self.unsettled = []
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def batch(self):
        with self.lock:
            if self.unsettled and (self.stopping.is_set() or random.random() < 0.3):
                return self.unsettled.pop()
            events = [{"type": "track", "event": "Tortured", "messageId": message_id(), "userId": f"user-{random.randrange(USERS)}",
                       "properties": {"text": "x" * random.randrange(400)}} for _ in range(random.randint(1, 4))]
            self.sent.update((event["userId"], event["messageId"]) for event in events)
            if random.random() < self.share:
                self.unsettled.append(events[::-1])
            return events

    def run(self):
        while not self.stopping.is_set() or self.unsettled:
            try:
                events = self.batch()
            except IndexError:
                return
            while not self.settled(events):
                time.sleep(random.uniform(0.005, 0.03))

    def settled(self, events):
        status = None
        try:
            status, answer = request(random.choice(self.gateways), "POST", "/v1/batch", {"batch": events}, self.headers, self.timeout)
        except (OSError, http.client.HTTPException):
            answer = {}
        good = status == 200 and not answer["rejected"]
        with self.lock:
            self.answers[status] += 1
            if good:
                self.acknowledged.update((event["userId"], event["messageId"]) for event in events)
                self.last = time.monotonic()
        return good

    def stop(self):
        """Returns once everything that was sent is acknowledged."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=120)
        if any(thread.is_alive() for thread in self.threads):
            raise SystemExit(f"what was sent is not acknowledged: {self.answers}")


class Reader:
    """Reads the app's events at any gateway until it is stopped and there are no more. `seen` is each event as it came."""

    def __init__(self, name, gateways, token):
        self.name, self.gateways, self.seen, self.problems = name, gateways, [], []
        self.headers = {"Authorization": "Bearer " + token}
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def ask(self, method, path, body=None):
        status, answer = request(random.choice(self.gateways), method, "/v1/apps/shop/" + path, body, self.headers)
        if status not in (200, 201, 409, 429, 502, 503, 504):
            self.problems.append(f"{self.name}: {method} {path}: {status} {answer}")
        return status, answer

    def run(self):
        while True:
            stopping = self.stopping.is_set()
            try:
                if not self.step() and stopping:
                    return
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
            if len(self.problems) > 20:
                return

    def see(self, events):
        self.seen += [(event["seq"], event["user_id"], event["message_id"]) for event in events]

    def stop(self):
        self.stopping.set()
        self.thread.join(timeout=300)
        if self.thread.is_alive():
            self.problems.append(f"{self.name}: does not come to the end")


class Follower(Reader):
    """Reads by position, which it keeps itself: it must see each event once."""

    after = None

    def step(self):
        query = f"events?limit={random.randint(1, 60)}&wait=1" + (f"&after={self.after}" if self.after else "")
        status, answer = self.ask("GET", query)
        if status != 200:
            time.sleep(0.02)
            return True
        self.see(answer["events"])
        self.after = answer["next"] or self.after
        return bool(answer["events"]) or answer["has_more"]


class Consumer(Reader):
    """Reads as a named consumer, whose position the gateways keep: it may see an event again when an answer was lost."""

    def step(self):
        status, answer = self.ask("POST", f"consumers/{self.name}/poll",
                                  {"limit": random.randint(1, 60), "wait": 1, "lease_seconds": 5})
        if status != 200:
            time.sleep(0.02)
            return True
        if not answer["lease"]:
            return self.lag() != 0
        self.see(answer["events"])
        body = {"lease": answer["lease"]["id"]}
        for _ in range(50):
            try:
                if self.ask("POST", f"consumers/{self.name}/ack", body)[0] in (200, 409):
                    break
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.02)
        return True

    def lag(self):
        """Nothing to lease may mean that a lease of a lost answer has not run out yet."""
        if not self.stopping.is_set():
            return 0
        status, answer = self.ask("GET", f"consumers/{self.name}")
        return answer["lag_events"] if status == 200 else None


def account(stored, load, readers, lossy=False):
    """What is wrong, as texts. `stored` is the whole log in its order, as (sequence, user, message id). After an asynchronous
    failover (`lossy`) acknowledged events may be gone, and readers may have seen what is gone; nothing else is forgiven.

    acknowledged ⊆ stored ⊆ sent, each once; what a reader sees first is the log in its order, all of it."""
    problems = []
    ids = [row[1:] for row in stored]
    kept = set(ids)
    lost, strange = load.acknowledged - kept, kept - load.sent
    if not load.acknowledged:
        problems.append("nothing was acknowledged")
    if lost and not lossy:
        problems.append(f"{len(lost)} acknowledged events are not stored, such as {sorted(lost)[:2]}")
    if len(ids) != len(kept):
        problems.append(f"{len(ids) - len(kept)} events are stored twice")
    if strange:
        problems.append(f"{len(strange)} events were never sent")
    log = set(stored)
    for reader in readers:
        problems += reader.problems[:3]
        first = list(dict.fromkeys(reader.seen))
        again = len(reader.seen) - len(first)
        if again and isinstance(reader, Follower):
            problems.append(f"{reader.name}: {again} came again")
        foreign = [event for event in first if event not in log]
        if foreign and not lossy:
            problems.append(f"{reader.name}: {len(foreign)} are not in the log, such as {foreign[:2]}")
        of_log = [event for event in first if event in log]
        missing = log - set(of_log)
        if missing:
            problems.append(f"{reader.name}: {len(missing)} of {len(log)} never came, such as {sorted(missing)[:2]}")
        disordered = sum(one[0] > other[0] for one, other in zip(of_log, of_log[1:]))
        if disordered:
            problems.append(f"{reader.name}: {disordered} came before one that is stored before them")
    return problems
