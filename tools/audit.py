"""Devices that send to several gateways, readers of all gateways, and a comparison with the stored events."""

import http.client
import threading
import time
from collections import Counter

from .common import DICE
from .gateway import message_id, request

USERS = 12
ERRORS = (OSError, http.client.HTTPException)


class Load:
    """Devices that send batches of one to four events, and each again until a gateway acknowledges it.

    One in twenty batches is sent by two devices at once. With `users`, headers for each user, a batch is of one user
    and has the user's headers. `gap` is the longest time without an acknowledgement, in seconds.
    """

    def __init__(self, gateways, key, threads=6, timeout=15, padding=400, users=None):
        self.gateways, self.timeout, self.padding, self.users, self.gap = gateways, timeout, padding, users, 0
        self.key, self.lock, self.stopping, self.abandons = key, threading.Lock(), threading.Event(), False
        self.sent, self.acknowledged, self.answers = set(), set(), Counter()
        self.last, self.refused_at, self.unsettled = time.monotonic(), None, []
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def batch(self):
        with self.lock:
            if self.unsettled and (self.stopping.is_set() or DICE.random() < 0.3):
                return self.unsettled.pop()
            user = self.users and DICE.choice(list(self.users))
            events = [{"type": "track", "event": "Tortured", "messageId": message_id(),
                       "userId": user or f"user-{DICE.randrange(USERS)}", "properties": {"text": "x" * DICE.randrange(self.padding)}}
                      for _ in range(DICE.randint(1, 4))]
            self.sent.update((event["userId"], event["messageId"]) for event in events)
            if DICE.random() < 0.05:
                self.unsettled.append(events[::-1])
            return events

    def run(self):
        while not self.stopping.is_set() or (self.unsettled and not self.abandons):
            try:
                events = self.batch()
            except IndexError:
                return
            while not self.settled(events) and not self.abandons:
                time.sleep(DICE.uniform(0.005, 0.03))

    def settled(self, events):
        status, answer = None, {}
        headers = self.users and self.users[events[0]["userId"]]
        try:
            status, answer = DICE.choice(self.gateways).batch(events, self.key, headers, timeout=self.timeout)
        except ERRORS:
            pass
        good = status == 200 and not answer["rejected"]
        with self.lock:
            self.answers[status] += 1
            if status == 503 and not self.refused_at:
                self.refused_at = time.monotonic()
            if good:
                self.acknowledged.update((event["userId"], event["messageId"]) for event in events)
                self.gap, self.last = max(self.gap, time.monotonic() - self.last), time.monotonic()
        return good

    def stop(self, abandon=False):
        """Returns once everything that was sent is acknowledged, or at once with `abandon`."""
        self.abandons = abandon
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=120)
        if any(thread.is_alive() for thread in self.threads):
            raise SystemExit(f"events are not acknowledged: {self.answers}")


class Reader:
    """Reads the events of `shop` at any gateway until it is stopped and there are no more. `seen` has each event as it came."""

    partitions, limit = 1, 60

    def __init__(self, name, gateways, bearer, workers=1):
        self.name, self.gateways, self.bearer = name, gateways, bearer
        self.seen, self.confirmed, self.problems, self.sought = [], Counter(), [], None
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(workers)]
        for thread in self.threads:
            thread.start()

    def ask(self, method, path, body=None):
        status, answer = request(DICE.choice(self.gateways), method, "/v1/apps/shop/" + path, body, self.bearer)
        if status not in (200, 201, 409, 429, 502, 503, 504):
            self.problems.append(f"{self.name}: {method} {path}: {status} {answer}")
        return status, answer

    def run(self):
        while len(self.problems) < 20:
            stopping = self.stopping.is_set()
            try:
                if not self.step() and stopping:
                    return
            except ERRORS:
                time.sleep(0.02)

    def see(self, events):
        found = [(event["seq"], event["user_id"], event["message_id"]) for event in events]
        with self.lock:
            self.seen += found
        return found

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=300)
        if any(thread.is_alive() for thread in self.threads):
            self.problems.append(f"{self.name}: does not reach the end")


class Follower(Reader):
    """Reads by position, which it keeps itself, so it must see each event once."""

    after = None

    def step(self):
        query = f"events?limit={DICE.randint(1, self.limit)}&wait=1" + (f"&after={self.after}" if self.after else "")
        status, answer = self.ask("GET", query)
        if status != 200:
            time.sleep(0.02)
            return True
        self.see(answer["events"])
        self.after = answer["next"] or self.after
        return bool(answer["events"]) or answer["has_more"]


class Consumer(Reader):
    """Reads as a named consumer. The gateways keep its position. It may see an event again when an answer was lost.

    With `hostile`, workers die with a lease, outlive it, or confirm only a part of it.
    """

    def __init__(self, name, gateways, bearer, workers=1, partitions=1, hostile=False):
        self.partitions, self.hostile = partitions, hostile
        super().__init__(name, gateways, bearer, workers)

    def chance(self, probability):
        return self.hostile and not self.stopping.is_set() and DICE.random() < probability

    def step(self):
        status, answer = self.ask("POST", f"consumers/{self.name}/poll",
                                  {"limit": DICE.randint(1, self.limit), "wait": 1, "lease_seconds": 5})
        if status != 200:
            time.sleep(0.02)
            return True
        if not answer["lease"]:
            return self.lag() != 0
        if self.chance(0.03):
            return True  # It dies before it has looked at the events.
        found, body = self.see(answer["events"]), {"lease": answer["lease"]["id"]}
        if self.chance(0.05):
            return True  # It dies before it confirms them.
        if self.chance(0.03):
            time.sleep(DICE.choice([0.2, 6]))
        if self.chance(0.2) and len(found) > 1:
            found = found[:DICE.randrange(1, len(found))]
            body["position"] = answer["events"][len(found) - 1]["position"]
        if self.confirm(body, found) and "position" in body:
            self.ask("POST", f"consumers/{self.name}/release", {"lease": body["lease"]})
        return True

    def confirm(self, body, found):
        for _ in range(50):
            try:
                status, _ = self.ask("POST", f"consumers/{self.name}/ack", body)
                if status == 200:
                    with self.lock:
                        self.confirmed.update(found)
                if status in (200, 409):
                    return status == 200
            except ERRORS:
                pass
            time.sleep(0.02)
        return False

    def lag(self):
        """The events not yet confirmed. There may be nothing to lease because the lease of a lost answer still runs."""
        if not self.stopping.is_set():
            return 0
        status, answer = self.ask("GET", f"consumers/{self.name}")
        return answer["lag_events"] if status == 200 else None

    def seek(self):
        """Moves the consumer backwards, never ahead of its confirmed events."""
        _, answer = self.ask("GET", "events?limit=30")
        if answer.get("events") and self.confirmed and answer["events"][-1]["seq"] < max(self.confirmed)[0]:
            # Read before the request: a worker may get its next events before the answer is here.
            began, event = len(self.seen), answer["events"][-1]
            if self.ask("POST", f"consumers/{self.name}/seek", {"position": event["position"]})[0] == 200:
                self.sought = (event["seq"], began)


def account(stored, load, readers=(), lossy=False):
    """The problems, as texts. `stored` is the whole log in its order, as (sequence, user, message id).

    acknowledged ⊆ stored ⊆ sent, each once. A reader sees each stored event, within a partition in the log's
    order. After an asynchronous failover (`lossy`) acknowledged events may be lost, even if read before.
    """
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
    for reader in readers:
        problems += reader.problems[:3] + read(set(stored), reader, lossy)
    return problems


def read(log, reader, lossy):
    """The problems of one reader."""
    first = list(dict.fromkeys(reader.seen))
    of_log = [event for event in first if event in log]
    foreign, missing = len(first) - len(of_log), log - set(of_log)
    of_user = {user: [event for event in of_log if event[1] == user] for user in {user for _, user, _ in of_log}}
    orders = [of_log] if reader.partitions == 1 else of_user.values()
    found = {
        "are not in the log": 0 if lossy else foreign,
        "never came": len(missing),
        "came again": len(reader.seen) - len(first) if isinstance(reader, Follower) else 0,
        "came before one that is stored before them": sum(
            one[0] > other[0] for order in orders for one, other in zip(order, order[1:])),
        "were confirmed twice": 0 if reader.sought or lossy else sum(count > 1 for count in reader.confirmed.values()),
    }
    if reader.sought:
        position, began = reader.sought
        again = reader.seen[began:]
        wanted = sorted(event for event in log if event[0] > position)
        again = again[again.index(wanted[0]):] if wanted and wanted[0] in again else []
        found["did not come again after the seek"] = len(set(wanted) - set(again))
    return [f"{reader.name}: {count} of {len(log)} events {what}" for what, count in found.items() if count]
