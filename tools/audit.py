"""Simulated devices and readers for one or more gateways, and the checker that compares sent, stored and read events."""

import contextlib
import hashlib
import http.client
import json
import subprocess
import threading
import time
from collections import Counter
from itertools import zip_longest
from types import SimpleNamespace

from .common import DICE, check
from .gateway import COLUMNS, message_id, request

USERS = 12
ERRORS = (OSError, http.client.HTTPException)


def columns(events):
    """The events of a JSON response as tuples of `COLUMNS`."""
    return [tuple(event[name] for name in COLUMNS) for event in events]


class Load:
    """Devices that send batches of one to four events, and repeat each batch until a gateway acknowledges it.

    One in twenty batches is sent a second time, with its events in reverse order. With `users` (headers of each user), a batch has
    events and headers of one user. Before one batch in twenty, an event with another user's token is sent, which must not be stored.
    `gap` is the longest time without an acknowledgement, in seconds.
    """

    def __init__(self, gateways, key, threads=6, timeout=15, padding=400, users=None):
        self.gateways, self.timeout, self.padding, self.users, self.gap = gateways, timeout, padding, users, 0
        self.key, self.lock, self.stopping, self.abandons = key, threading.Lock(), threading.Event(), False
        self.sent, self.acknowledged, self.answers, self.duplicates = set(), set(), Counter(), 0
        self.last, self.rejected_at, self.unsettled = time.monotonic(), None, []
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def event(self, user):
        return {"type": "track", "event": "Tortured", "messageId": message_id(), "userId": user or f"user-{DICE.randrange(USERS)}",
                "properties": {"text": "x" * DICE.randrange(self.padding)}}

    def forge(self):
        """Sends an event with the token of another user. It is not in `sent`."""
        user, other = DICE.sample(list(self.users), 2)
        with contextlib.suppress(*ERRORS):
            DICE.choice(self.gateways).batch([self.event(user)], self.key, self.users[other], timeout=self.timeout)

    def batch(self):
        with self.lock:
            if self.unsettled and (self.stopping.is_set() or DICE.random() < 0.3):
                return self.unsettled.pop()
            user = self.users and DICE.choice(list(self.users))
            events = [self.event(user) for _ in range(DICE.randint(1, 4))]
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
            if self.users and DICE.random() < 0.05:
                self.forge()
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
            if status == 503 and not self.rejected_at:
                self.rejected_at = time.monotonic()
            if good:
                self.duplicates += answer["accepted"] == 0
                self.acknowledged.update((event["userId"], event["messageId"]) for event in events)
                self.gap, self.last = max(self.gap, time.monotonic() - self.last), time.monotonic()
        return good

    def stop(self, abandon=False):
        """Waits until all sent events are acknowledged. With `abandon`, devices end without further requests."""
        self.abandons = abandon
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=120)
        if any(thread.is_alive() for thread in self.threads):
            raise SystemExit(f"events are not acknowledged: {self.answers}")


class Reader:
    """Reads all events of `shop` until `stop`, each request at a random gateway. `seen` has the events in order."""

    partitions, limit = 1, 60

    def __init__(self, name, gateways, bearer, workers=1):
        self.name, self.gateways, self.bearer = name, gateways, bearer
        self.seen, self.confirmed, self.problems, self.last_seek = [], Counter(), [], None
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
        found = columns(events)
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
    """Reads by position. The reader itself stores its position, so it must see each event once."""

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
    """Reads as a named consumer. The gateways store its position. After a lost response it may see an event again.

    With `hostile`, a worker abandons its lease, works until the lease has expired, or acknowledges only a part of it.
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
            return True  # The worker dies before it reads the events.
        found, body = self.see(answer["events"]), {"lease": answer["lease"]["id"]}
        if self.chance(0.05):
            return True  # The worker dies before it acknowledges the events.
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
        """0 before `stop`, then the number of unacknowledged events, leased ones included, or None after an error."""
        if not self.stopping.is_set():
            return 0
        status, answer = self.ask("GET", f"consumers/{self.name}")
        return answer["lag_events"] if status == 200 else None

    def seek(self):
        """Moves the consumer back to the 30th event, if the consumer has acknowledged a later one."""
        _, answer = self.ask("GET", "events?limit=30")
        if answer.get("events") and self.confirmed and answer["events"][-1]["seq"] < max(self.confirmed)[0]:
            # Counted before the request, because a worker may get events between the seek and its response.
            began, event = len(self.seen), answer["events"][-1]
            if self.ask("POST", f"consumers/{self.name}/seek", {"position": event["position"]})[0] == 200:
                self.last_seek = (event["seq"], began)


def listed(folder):
    """The entries of the manifest of an app's hourly files, without an incomplete last line."""
    manifest = folder / "manifest.ndjson"
    text = manifest.read_bytes() if manifest.exists() else b""
    return [json.loads(line) for line in text[:text.rfind(b"\n") + 1].splitlines()]


def lines(folder, entry):
    """The lines of a listed file, each the JSON of an event. Checks the file's size and hash."""
    data = (folder / entry["file"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == entry["sha256"] and len(data) == entry["bytes"], entry
    with subprocess.Popen(["zstd", "-dqc", folder / entry["file"]], stdout=subprocess.PIPE, text=True) as process:
        yield from process.stdout
    assert process.returncode == 0, entry


class Listed(Follower):
    """A list of events from a file, a stream or a database, in the form of a reader. `seen` has message ids or tuples of `COLUMNS`."""

    def __init__(self, name, seen, stored):
        of_id = {row[2]: row for row in stored}
        self.name, self.confirmed, self.problems, self.last_seek = name, Counter(), [], None
        self.seen = [of_id.get(one, (0, None, one)) if isinstance(one, str) else one for one in seen]


class Tally:
    """The received events, with one byte for each, for runs with millions of events. Message ids are USER/NUMBER."""

    def __init__(self, name):
        self.name, self.seen, self.count, self.last, self.found = name, bytearray(), 0, 0, Counter()

    def mark(self, number):
        """Marks an event by its number. Returns whether it is new."""
        if number >= len(self.seen):
            self.seen.extend(bytes(number + 100_000 - len(self.seen)))
        is_new = not self.seen[number]
        self.seen[number] = 1
        self.count += is_new
        return is_new

    def take(self, stored):
        """Adds events (tuples of `COLUMNS`). A verified event must have its user's token (`token_of`) or a token of the gateway's token service."""
        for position, user, identifier, verdict, token in stored:
            owner, number = identifier.split("/")
            self.found["came again"] += not self.mark(int(number))
            self.found["came out of order"] += position <= self.last
            is_own = verdict != "verified" or token == token_of(user) or not (token or "").startswith(token_of(""))
            self.found["do not have the token of their user"] += user != owner or not is_own
            self.last = position

    def problems(self, sent, acknowledged):
        """Texts of the problems. `sent` is the number of sent events."""
        missing = sum(one > other for one, other in zip_longest(acknowledged.seen, self.seen, fillvalue=0))
        return [f"{self.name}: {problem}" for problem in failures(
            {**self.found, "events never came": missing, "events were never sent": sum(self.seen[sent:])})]


def compare(what, load, stored, *lists):
    """Exits unless all events of `load` are stored, and each list has the stored events once and in order. Lists are as in `Listed`."""
    problems = account(stored, load, [Listed(what, seen, stored) for seen in lists], dense=True)
    check(f"{what}: {len(stored)} events, once and in order", not problems, "; ".join(problems))


def failures(found):
    """A text for each count above 0."""
    return [f"{count} {what}" for what, count in found.items() if count]


def account(stored, load, readers=(), lossy=False, dense=False):
    """Texts of the problems. `stored` is the whole event log in order, as tuples of `COLUMNS`.

    Checks that acknowledged ⊆ stored ⊆ sent, without duplicates, each event with its user's token, and that a reader sees
    each stored event, within a partition in the log's order. After an asynchronous failover (`lossy`) acknowledged events
    may be lost, even if they were read. With `dense`, positions have no gaps: SQLite assigns them in the transaction that
    stores the events. PostgreSQL derives positions from transaction ids, so they only ascend.
    """
    problems = []
    ids = [row[1:3] for row in stored]
    positions = [row[0] for row in stored]
    distinct = set(ids)
    lost = load.acknowledged - distinct
    if not load.acknowledged:
        problems.append("nothing was acknowledged")
    if lost and not lossy:
        problems.append(f"{len(lost)} acknowledged events are not stored, such as {sorted(lost)[:2]}")
    problems += failures({
        "events are stored twice": len(ids) - len(distinct),
        "events were never sent": len(distinct - load.sent),
        "events do not have the token of their user": len(stored) - sum(
            row[3:] == ("verified", token_of(row[1])) for row in stored) if load.users else 0,
        "positions are not greater than the position before": sum(one >= other for one, other in zip(positions, positions[1:])),
        "positions are missing": positions[-1] - positions[0] + 1 - len(positions) if dense and positions else 0,
    })
    for reader in readers:
        problems += reader.problems[:3] + read(set(stored), reader, lossy)
    return problems


# On SQLite: stored events, counted events, requests with a valid token that stored events, and counted requests with a valid token.
# The gateway writes counts once a second, and adds the events after the last write (`late`) when it starts again. So the query adds them.
COUNTS = """
    WITH late AS (SELECT request_uuid, key_number FROM event WHERE seq > (SELECT seq FROM counted))
    SELECT (SELECT count(*) FROM event), (SELECT coalesce(sum(events), 0) FROM app_usage) + (SELECT count(*) FROM late),
        (SELECT count(DISTINCT request_uuid) FROM event WHERE key_number IS NOT NULL),
        (SELECT coalesce(sum(verified), 0) FROM key_use) + (SELECT count(DISTINCT request_uuid) FROM late WHERE key_number IS NOT NULL)"""


def counted(events, counts, load=None, requests=0, uses=0):
    """The problems of these counts. A request with a valid token may count without a new event: only duplicates, a 503, or no response."""
    most = requests + (load.duplicates + load.answers[None] + load.answers[503] if load else 0)
    return [f"app_usage counts {counts} of {events} events"] * (counts != events) + [
        f"key_use counts {uses} requests, and not {requests} to {most}"] * (load is not None and not requests <= uses <= most)


def token_of(user):
    """The id (`jti`) of the token of a user."""
    return f"token-{user}"


def generations(exchanges):
    """The problems of exchanges (refresh token, status, new token): each token must have one child, and no two tokens the same child."""
    children = {}
    for token, status, child in exchanges:
        children.setdefault(token, set()).update([child] if status == 200 else [])
    made = Counter(child for found in children.values() for child in found)
    return failures({
        "refresh tokens have no successor": sum(not found for found in children.values()),
        "refresh tokens have 2 children": sum(len(found) > 1 for found in children.values()),
        "refresh tokens have 2 parents": sum(count > 1 for count in made.values()),
        "refresh tokens are their own parent": sum(token in found for token, found in children.items()),
    })


def revoked(answers, revocations):
    """The problems of requests (token, begin, end, status) that began while their token was revoked. Revocations are (token, from, to)."""
    return failures({"requests were accepted after the deletion was confirmed": sum(
        status == 200 and known == token and start < begun < end
        for token, start, end in revocations for known, begun, _, status in answers)})


def read(log, reader, lossy):
    """The problems of one reader, compared with the set of stored events."""
    first = list(dict.fromkeys(reader.seen))
    of_log = [event for event in first if event in log]
    foreign, missing = len(first) - len(of_log), log - set(of_log)
    of_user = {user: [event for event in of_log if event[1] == user] for user in {event[1] for event in of_log}}
    orders = [of_log] if reader.partitions == 1 else of_user.values()
    found = {
        "are not in the log": 0 if lossy else foreign,
        "never came": len(missing),
        "came again": len(reader.seen) - len(first) if isinstance(reader, Follower) else 0,
        "came out of order": sum(
            one[0] > other[0] for order in orders for one, other in zip(order, order[1:])),
        "were confirmed twice": 0 if reader.last_seek or lossy else sum(count > 1 for count in reader.confirmed.values()),
    }
    if reader.last_seek:
        position, began = reader.last_seek
        again = reader.seen[began:]
        wanted = sorted(event for event in log if event[0] > position)
        again = again[again.index(wanted[0]):] if wanted and wanted[0] in again else []
        found["were not read again after the seek"] = len(set(wanted) - set(again))
    return [f"{reader.name}: {count} of {len(log)} events {what}" for what, count in found.items() if count]


# MARK: A check of the checker

HISTORY = [(number, f"user-{number % 3}", f"m-{number}", "verified", token_of(f"user-{number % 3}")) for number in range(1, 10)]


def changed(number, **new):
    """`HISTORY` with one event changed."""
    return [tuple({**dict(zip(COLUMNS, row)), **new}.values()) if row[0] == number else row for row in HISTORY]


def audited(stored, seen=None):
    """The problems that `account` finds if `HISTORY` was sent and acknowledged, `stored` was stored, and a reader has seen `seen`."""
    sent = {row[1:3] for row in HISTORY}
    load = SimpleNamespace(sent=sent, acknowledged=sent, users=True)
    return account(stored, load, [Listed("list", seen or stored, stored)], dense=True)


def tallied(*rows, count=1):
    """The problems of a `Tally` of these events (tuples of `COLUMNS`) if `count` events were sent and acknowledged."""
    tally, acknowledged = Tally("tally"), Tally("acknowledged")
    tally.take(rows)
    for number in range(count):
        acknowledged.mark(number)
    return tally.problems(count, acknowledged)


def main(_):
    """Exits unless the checker reports each false history, and reports no problem of a true history."""
    known, gone = SimpleNamespace(duplicates=1, answers=Counter({None: 1})), [("a", 5, 9)]
    true = [audited(HISTORY), counted(9, 9, known, 4, 6), generations([("a", 200, "b"), ("a", None, None), ("b", 200, "c")]),
            revoked([("a", 4, 6, 200), ("a", 6, 7, 401), ("b", 6, 7, 200)], gone),
            tallied((1, "a", "a/0", "verified", token_of("a")), (4, "b", "b/1", "warned", None), (5, "c", "c/2", "verified", "x"), count=3)]
    false = {
        "acknowledged events are not stored": audited(HISTORY[:-1]),
        "events are stored twice": audited([*HISTORY, (10, *HISTORY[0][1:])]),
        "events were never sent": audited([*HISTORY, (10, "user-1", "m-10", "verified", token_of("user-1"))]),
        "1 events do not have the token of their user": audited(changed(3, token_id=token_of("user-1"))),
        "not have the token of their user": audited(changed(3, verdict="warned")),
        "not greater than the position before": audited(HISTORY[1::-1] + HISTORY[2:]),
        "positions are missing": audited(changed(9, seq=10)),
        "never came": audited(HISTORY, HISTORY[:-1]),
        "came again": audited(HISTORY, [*HISTORY, HISTORY[-1]]),
        "came out of order": audited(HISTORY, [*HISTORY[:-2], HISTORY[-1], HISTORY[-2]]),
        "not in the log": audited(HISTORY, changed(3, verdict="warned")),
        "app_usage counts 10 of 9": counted(9, 10),
        "key_use counts 7": counted(9, 9, known, 4, 7),
        "key_use counts 3": counted(9, 9, known, 4, 3),
        "2 children": generations([("a", 200, "b"), ("a", 200, "c")]),
        "2 parents": generations([("a", 200, "c"), ("b", 200, "c")]),
        "no successor": generations([("a", 503, None)]),
        "their own parent": generations([("a", 200, "a")]),
        "accepted after the deletion": revoked([("a", 6, 7, 200)], gone),
        "tally: 1 came again": tallied((1, "a", "a/0", "warned", None), (2, "a", "a/0", "warned", None)),
        "tally: 1 came out of order": tallied((2, "a", "a/0", "warned", None), (1, "a", "a/1", "warned", None), count=2),
        "tally: 1 do not have the token": tallied((1, "a", "a/0", "verified", token_of("b"))),
        "tally: 2 do not have the token": tallied((1, "a", "b/0", "warned", None), (2, "a", "b/1", "warned", None), count=2),
        "tally: 1 events never came": tallied((1, "a", "a/0", "warned", None), count=2),
        "tally: 1 events were never sent": tallied((1, "a", "a/0", "warned", None), (2, "a", "a/1", "warned", None)),
    }
    missed = [what for what, problems in false.items() if not any(what in problem for problem in problems)]
    check("the checker finds each false history", not any(true) and not missed, [*true, *missed])
