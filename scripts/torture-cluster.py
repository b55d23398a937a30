#!/usr/bin/env python3
"""Kills gateways on one PostgreSQL, the database and the network between them, and counts what is left.

Usage: scripts/torture-cluster.py [FAULT …] [--rounds N] [--gateways N] [--countersign PATH] [--before PATH]

Devices send through all gateways; what was not acknowledged is sent again, to another one. Two readers read at any gateway, one
by position, one as a named consumer. A fault is survived when

  - each acknowledged event is stored, once, and nothing is stored that was not sent
  - each reader has read what is stored, in its order, all of it
  - and what the fault itself asks for, below

  gateways   kill -9 of gateways
  database   kill -9 of PostgreSQL's first process, or of one that works for a gateway
  wire       the connection of one gateway stops without ending: it says 503 meanwhile
  network    the network of one gateway is gone (a namespace; needs root): it says 503, and /readyz no
  unknown    answers of the database are lost, so that nobody knows whether a commit was one
  pooler     kill -9 of pgbouncer, which gives each connection a session of its own
  failover   the primary is killed and its standby promoted: asynchronous, where acknowledged events may be gone but no
             reader may pass over a stored one, and synchronous, where none may be gone
  migrate    many gateways start at once on an empty database, one is killed: each step is done once
  rolling    each gateway is stopped and started again
  upgrade    the schema gains what a later version adds, while gateways work: they go on, and none starts on it any more;
             with --before, gateways of that version give way to this one's, one after the other: nobody notices
  clocks     gateways whose clocks are an hour apart: no lease and no refresh token is lost by that, and a warning says so
  refresh    one refresh token at all gateways at once, gateways killed: one rotation a generation
  keys       keys are added and deleted at one gateway while all are asked, one is killed or its connection stops: none
             accepts what begins after the deletion was confirmed
  audit      changes through all gateways at once, gateways killed: the chain is whole

Exit status: 0 all was survived, 1 otherwise, 2 it could not be tried.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import statistics
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cluster
from cluster import Gateway, Namespace, Pooler, Server, Skipped, Wire, faketime, until
from histories import Consumer, Follower, Load, account, request

SCRIPTS = Path(__file__).resolve().parent
STORED = "SELECT position, user_id, message_id FROM countersign.event ORDER BY position"


class Cluster:
    """A server with an app on it, and gateways."""

    def __init__(self, options, name, binary=None):
        self.binary, self.name = binary or options.countersign, name
        self.folder = cluster.workshop(f"countersign-{name}-")
        self.servers, self.gateways, self.wires, self.log_of = [], [], [], []

    def server(self, **more):
        self.servers.append(Server(self.folder, f"server-{len(self.servers)}", **more))
        return self.servers[-1]

    @property
    def database(self):
        return self.servers[0].url()

    def command(self, *arguments, database=None):
        return cluster.command(self.binary, self.folder, database or self.database, *arguments)

    def app(self):
        """Makes the app, what reads it and who may do anything; returns the app's write key."""
        self.key = self.command("app", "create", "shop")
        self.reader = self.command("admin", "token", "create", "--name", "reader", "--scopes", "reader", "--app", "shop")
        self.admin = {"Authorization": "Bearer " + self.command("admin", "token", "create", "--name", "owner", "--scopes", "admin")}
        return self.key

    def gateway(self, **more):
        database = more.pop("database", self.database)
        binary = more.pop("binary", self.binary)
        self.gateways.append(Gateway(binary, self.folder, f"gateway-{len(self.gateways)}", database, **more).start())
        return self.gateways[-1]

    def wired(self, lose=0.0):
        """A gateway whose connections to the server can be stopped."""
        self.wires.append(Wire(self.servers[0].port, lose))
        return self.gateway(database=self.servers[0].url(port=self.wires[-1].port)), self.wires[-1]

    def begin(self, **more):
        """Begins to send and to read."""
        self.command("consumer", "create", "shop", "named")
        self.load = Load(self.gateways, self.key, **more)
        self.readers = [Follower("by position", self.gateways, self.reader), Consumer("named", self.gateways, self.reader)]

    def progress(self, seconds=60):
        """Waits until something is acknowledged that was not yet."""
        began = time.monotonic()
        until(f"{self.name}: an acknowledged event", lambda: self.load.last > began, seconds)

    def end(self, said, problems=(), lossy=False, server=None):
        """Ends it, and prints and returns the verdict."""
        self.load.stop()
        for reader in self.readers:
            reader.stop()
        rows = (server or self.servers[-1]).rows(STORED)
        stored = [(int(position), user, identifier) for position, user, identifier in rows]
        problems = list(problems) + account(stored, self.load, self.readers, lossy)
        acknowledged = self.load.acknowledged
        said += f"; {len(acknowledged)} events acknowledged, {len(stored)} stored"
        if lossy:
            said += f", {len(acknowledged - {row[1:] for row in stored})} gone"
        return self.verdict(f"{said}, read {' and '.join(str(len(reader.seen)) for reader in self.readers)}", problems)

    def verdict(self, said, problems):
        self.stop()
        print(f"{self.name}: {said}" + "".join(f"; {problem}" for problem in problems[:6])
              + (": BAD" if problems else ": good"), flush=True)
        if problems:
            print(f"{self.name}: what is left is in {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        return not problems

    def stop(self):
        for gateway in self.gateways:
            if gateway.process and gateway.process.poll() is None:
                gateway.kill()
        for one in self.wires + self.servers:
            one.stop()


def usual(options, name, lose=0.0, binary=None):
    """A server, an app, so many gateways, and everything under way."""
    made = Cluster(options, name, binary)
    made.server()
    made.app()
    for _ in range(options.gateways):
        if lose:
            made.wired(lose)
        else:
            made.gateway()
    made.begin()
    made.progress()
    for wire in made.wires:
        wire.lose()
    return made


def gateways(options, rounds=100):
    made = usual(options, "gateways")
    for _ in range(rounds):
        time.sleep(random.uniform(0.02, 0.4))
        gateway = random.choice(made.gateways)
        gateway.kill()
        if random.random() < 0.5:
            time.sleep(random.uniform(0, 0.3))
        gateway.start()
    made.progress()
    return made.end(f"{rounds} gateways killed")


def database(options, rounds=30):
    made, back, killed = usual(options, "database"), [], Counter()
    for number in range(rounds):
        time.sleep(random.uniform(0.1, 0.8))
        began = time.monotonic()
        if number % 2:
            killed["one of its processes"] += made.servers[0].kill_backend()
        else:
            killed["the first process"] += 1
            made.servers[0].kill()
            made.servers[0].start()
        made.progress()
        back.append(time.monotonic() - began)
    said = " and ".join(f"{what} {count} times" for what, count in killed.items())
    return made.end(f"killed {said}, back in {statistics.median(back):.2f} s, at most {max(back):.2f} s")


def refusal(made, gateway, seconds):
    """How long it takes until a gateway that is cut off says 503, and everything that it said before."""
    said, began = [], time.monotonic()
    while time.monotonic() - began < seconds:
        identifier = f"cut-{random.getrandbits(64)}"
        made.load.sent.add(("cut", identifier))
        try:
            status, _ = request(gateway, "POST", "/v1/batch", {"writeKey": made.key, "batch": [
                {"type": "track", "event": "Cut", "messageId": identifier, "userId": "cut"}]}, timeout=seconds)
        except (OSError, http.client.HTTPException):
            status = None
        said.append(status)
        if status == 503:
            return time.monotonic() - began, said
        time.sleep(0.05)
    return None, said


def cut_rounds(made, gateway, cut, mend, rounds, bound=20):
    """Cuts one gateway off and asks it; returns what is wrong and how long it took to say so and to come back."""
    problems, refused, back = [], [], []
    for _ in range(rounds):
        time.sleep(random.uniform(0.2, 0.6))
        cut()
        seconds, said = refusal(made, gateway, bound)
        if seconds is None:
            problems.append(f"cut off it said {Counter(said)} in {bound} s")
        else:
            refused.append(seconds)
        if 200 in said:
            problems.append("cut off it acknowledged an event")
        try:
            ready, _ = request(gateway, "GET", "/readyz", timeout=bound)
        except (OSError, http.client.HTTPException):
            ready = None
        if ready == 200:
            problems.append("cut off it said that it was ready")
        mend()
        began = time.monotonic()
        until(f"{made.name}: the gateway is ready again", lambda: is_ready(gateway), 60)
        back.append(time.monotonic() - began)
    if not refused:
        return problems, "never refused"
    return problems, f"503 after {statistics.median(refused):.1f} s, at most {max(refused):.1f} s, ready again in {max(back):.1f} s"


def is_ready(gateway):
    try:
        return request(gateway, "GET", "/readyz", timeout=5)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def wire(options, rounds=5):
    made = Cluster(options, "wire")
    made.server()
    made.app()
    for _ in range(options.gateways - 1):
        made.gateway()
    gateway, connection = made.wired()
    made.begin(timeout=30)
    made.progress()
    problems, said = cut_rounds(made, gateway, connection.cut, connection.mend, rounds)
    return made.end(f"{rounds} connections stopped, {said}", problems)


def network(options, rounds=5):
    namespace = Namespace()
    try:
        made = Cluster(options, "network")
        made.server(addresses=("127.0.0.1", namespace.server + ".1"))
        made.app()
        for _ in range(options.gateways - 1):
            made.gateway()
        gateway = made.gateway(database=made.servers[0].url(address=namespace.server + ".1"), host=namespace.devices + ".2",
                               prefix=("ip", "netns", "exec", namespace.name))
        made.begin(timeout=30)
        made.progress()
        problems, said = cut_rounds(made, gateway, namespace.cut, namespace.mend, rounds)
        return made.end(f"{rounds} networks cut, {said}", problems)
    finally:
        namespace.remove()


def unknown(options, rounds=20):
    made = usual(options, "unknown", lose=0.01)
    time.sleep(rounds)
    answers = made.load.answers
    refused = sum(count for status, count in answers.items() if status != 200)
    return made.end(f"{rounds} s in which one of 100 answers of the database was lost, {refused} requests sent again",
                    [] if refused else ["no answer was lost"])


def pooler(options, rounds=10):
    made, back = Cluster(options, "pooler"), []
    server = made.server()
    made.app()
    between = Pooler(made.folder, server)
    made.wires.append(between)
    for _ in range(options.gateways):
        made.gateway(database=server.url(port=between.port))
    made.begin()
    made.progress()
    for _ in range(rounds):
        time.sleep(random.uniform(0.2, 0.8))
        began = time.monotonic()
        between.stop()
        between.start()
        made.progress()
        back.append(time.monotonic() - began)
    return made.end(f"pgbouncer killed {rounds} times, back in {statistics.median(back):.2f} s, at most {max(back):.2f} s")


def failover(options, rounds=2):
    return all([promotion(options, synchronous=number % 2 == 1) for number in range(rounds)])


def promotion(options, synchronous):
    made = Cluster(options, "failover")
    first = made.server()
    line = Wire(first.port)
    made.wires.append(line)
    second = made.server(primary=first, through=line.port)
    if synchronous:
        first.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", "postgres")
        first.sql("SELECT pg_reload_conf()", "postgres")
    state = "sync" if synchronous else "async"
    until("the standby follows", lambda: [[state]] == first.rows("SELECT sync_state FROM pg_stat_replication"))
    made.app()
    both = (f"postgresql://{cluster.DATABASE}@127.0.0.1:{first.port},127.0.0.1:{second.port}/{cluster.DATABASE}"
            "?target_session_attrs=read-write")
    for _ in range(options.gateways):
        made.gateway(database=both)
    made.begin()
    time.sleep(random.uniform(1, 3))
    # What the standby has not received is gone: acknowledged events only where nobody waits for it.
    line.cut()
    time.sleep(0.5)
    began = time.monotonic()
    first.kill()
    line.stop()
    second.promote()
    made.progress()
    back = time.monotonic() - began
    time.sleep(1)
    return made.end(f"{'synchronous' if synchronous else 'asynchronous'}, acknowledged again after {back:.2f} s",
                    lossy=not synchronous)


def migrate(options, rounds=10):
    made, many, slowest = Cluster(options, "migrate"), 8, 0.0
    server, problems, steps = made.server(), [], 0
    for number in range(rounds):
        name = f"migrate{number}"
        server.make(name)
        began = time.monotonic()
        made.gateways = [Gateway(options.countersign, made.folder, f"gateway-{index}", server.url(name)) for index in range(many)]
        for gateway in made.gateways:
            gateway.launch()
        victim = random.choice(made.gateways)
        time.sleep(random.uniform(0, 0.3))
        victim.process.kill()
        for index, gateway in enumerate(made.gateways):
            if gateway is not victim and not gateway.started():
                problems.append(f"round {number}: gateway {index} did not start; see {gateway.log}")
        slowest = max(slowest, time.monotonic() - began)
        versions = [int(row[0]) for row in server.rows("SELECT version FROM countersign.schema_version ORDER BY version", name)]
        steps = len(versions)
        if versions != list(range(1, steps + 1)) or not steps:
            problems.append(f"round {number}: the steps are {versions}")
        for gateway in made.gateways:
            gateway.kill()
    return made.verdict(f"{rounds} times {many} gateways at once on an empty database, one killed; {steps} steps, each once, "
                        f"{slowest:.1f} s at most", problems)


def rolling(options, rounds=10):
    made, problems = usual(options, "rolling"), []
    for number in range(rounds):
        for gateway in made.gateways:
            time.sleep(random.uniform(0.1, 0.3))
            code = gateway.stop()
            if code != 0:
                problems.append(f"a gateway ended with {code}")
            gateway.start()
    strange = {status: count for status, count in made.load.answers.items() if status not in (200, 503, None)}
    if strange:
        problems.append(f"devices were told {strange}")
    refused = made.load.answers[503]
    return made.end(f"{rounds} rounds over {options.gateways} gateways, "
                    f"503 to {refused} requests", problems)


def replaced(options):
    """Gateways of the version before give way to this one's."""
    made, problems = usual(options, "upgrade", binary=options.before), []
    schema = "SELECT max(version) FROM countersign.schema_version"
    old = int(made.servers[0].rows(schema)[0][0])
    token = made.command("session", "create", "shop", "--user", "user-1")
    for number, gateway in enumerate(made.gateways):
        code = gateway.stop()
        if code != 0:
            problems.append(f"a gateway ended with {code}")
        gateway.binary = options.countersign
        gateway.start()
        # Each version's gateways go on with what the other's have written.
        for other in made.gateways:
            status, renewed = exchange(other, token)
            if status != 200:
                problems.append(f"a refresh token met {status} after {number + 1} were replaced")
            token = renewed or token
            for path, body in (("/admin/api/apps", {"id": f"app-{number}-{other.port}", "name": "New"}),
                               ("/admin/api/apps/shop/sessions", {"user": "user-2"})):
                status, _ = request(other, "POST", path, body, made.admin)
                if status != 201:
                    problems.append(f"POST {path} met {status} after {number + 1} were replaced")
        made.progress()
    made.binary = options.countersign
    if len(json.loads(made.command("app", "list", "--json"))) != 1 + len(made.gateways) ** 2:
        problems.append("a confirmed change is gone")
    strange = {status: count for status, count in made.load.answers.items() if status not in (200, 503, None)}
    if strange:
        problems.append(f"devices were told {strange}")
    new = int(made.servers[0].rows(schema)[0][0])
    return made.end(f"{len(made.gateways)} gateways replaced one after the other, schema {old} to {new}, "
                    f"503 to {made.load.answers[503]} requests", problems)


def upgrade(options, rounds=3):
    return (not options.before or replaced(options)) and added(options, rounds)


def added(options, rounds):
    """The schema gains what a later version adds."""
    made, problems = usual(options, "upgrade"), []
    server = made.servers[0]
    newest = int(server.rows("SELECT max(version) FROM countersign.schema_version")[0][0])
    for number in range(newest + 1, newest + 1 + rounds):
        server.sql(f"""
            BEGIN;
            ALTER TABLE countersign.event ADD COLUMN later_{number} TEXT;
            ALTER TABLE countersign.app ADD COLUMN later_{number} BIGINT NOT NULL DEFAULT 0;
            INSERT INTO countersign.schema_version VALUES ({number}, now(), 'later');
            COMMIT""")
        made.progress()
        time.sleep(1)
    failed = {status: count for status, count in made.load.answers.items() if status not in (200, 503)}
    if failed:
        problems.append(f"devices were told {failed}")
    late = Gateway(options.countersign, made.folder, "late", made.database)
    late.launch()
    if late.started():
        problems.append("an older program starts on a newer schema")
        late.kill()
    elif late.wait() == 0 or "newer version" not in late.log.read_text():
        problems.append(f"a newer schema is not refused in words; see {late.log}")
    return made.end(f"{rounds} later versions' steps under load", problems)


def clocks(options, rounds=10):
    made, problems = Cluster(options, "clocks"), []
    prefixes = [faketime(offset) for offset in (-3600, 3600)]
    made.server()
    made.app()
    made.gateway()
    for prefix in prefixes:
        made.gateway(prefix=prefix)
    made.command("app", "create", "later")
    made.command("enforcement", "set", "later", "required", "--at", "30m", "--yes")
    made.begin()
    made.progress()
    # A lease that one clock has given is not taken away by another.
    made.command("consumer", "create", "shop", "leased")
    reader, stolen = {"Authorization": "Bearer " + made.reader}, 0
    for _ in range(rounds):
        one, other = random.sample(made.gateways, 2)
        body = {"limit": 5, "lease_seconds": 60, "wait": 5}
        _, first = request(one, "POST", "/v1/apps/shop/consumers/leased/poll", body, reader)
        _, second = request(other, "POST", "/v1/apps/shop/consumers/leased/poll", {**body, "wait": 0}, reader)
        if not first.get("lease"):
            problems.append(f"nothing to lease: {first}")
            continue
        stolen += bool({event["seq"] for event in first["events"]} & {event["seq"] for event in second.get("events", [])})
        status, answer = request(other, "POST", "/v1/apps/shop/consumers/leased/ack", {"lease": first["lease"]["id"]}, reader)
        if status != 200:
            problems.append(f"a lease could not be confirmed elsewhere: {status} {answer}")
        if second.get("lease"):
            request(one, "POST", "/v1/apps/shop/consumers/leased/release", {"lease": second["lease"]["id"]}, reader)
    if stolen:
        problems.append(f"{stolen} leases were given to another")
    # A refresh token is good, and good once more for a minute, by all of them.
    token = made.command("session", "create", "shop", "--user", "user-1")
    for number in range(rounds):
        one, other = random.sample(made.gateways, 2)
        answers = [exchange(one, token), exchange(other, token)]
        if [status for status, _ in answers] != [200, 200] or answers[0][1] != answers[1][1]:
            problems.append(f"refresh {number} was answered {[status for status, _ in answers]}, or with two tokens")
            break
        token = answers[0][1]
    # A switch in half an hour is not made by whose clock is an hour ahead.
    state = json.loads(made.command("enforcement", "show", "later", "--json"))["state"]
    if state != "disabled":
        problems.append(f"half an hour early the app was switched to {state}")
    warned = [warning["code"] for warning in json.loads(made.command("cluster", "status", "--json"))["warnings"]]
    if warned.count("clock") != 2:
        problems.append(f"cluster status warns of {warned}")
    return made.end(f"clocks an hour apart, {rounds} leases, {rounds} refreshes at two gateways", problems)


def exchange(gateway, token):
    """The status and the new refresh token."""
    status, answer = request(gateway, "POST", "/api/refresh_token", {"refresh_token": token}, {"Content-Type": "application/json"})
    return status, answer.get("refreshToken") or answer.get("refresh_token")


def refresh(options, rounds=100):
    made, problems = Cluster(options, "refresh"), []
    made.server()
    made.app()
    for _ in range(options.gateways):
        made.gateway(environment={"COUNTERSIGN_TOKEN_REQUESTS_PER_SECOND": "0"})
    token = made.command("session", "create", "shop", "--user", "user-1")
    many, statuses, kills = 16, Counter(), 0

    def tried(gateway):
        try:
            return exchange(gateway, token)
        except (OSError, http.client.HTTPException):
            return None, None

    with ThreadPoolExecutor(many) as pool:
        for number in range(rounds):
            asked = pool.map(tried, [made.gateways[index % len(made.gateways)] for index in range(many)])
            if number % 10 == 9:
                victim = random.choice(made.gateways)
                time.sleep(random.uniform(0, 0.03))
                victim.kill()
                kills += 1
            answers = list(asked)
            statuses.update(status for status, _ in answers)
            if number % 10 == 9:
                victim.start()
            children = {child for status, child in answers if status == 200}
            if len(children) != 1 or token in children or {status for status, _ in answers} - {200, 503, None}:
                problems.append(f"generation {number}: {len(children)} children, {Counter(status for status, _ in answers)}")
                break
            token = children.pop()
    return made.verdict(f"{rounds} generations, each {many} times at once over {options.gateways} gateways, {kills} of them killed, "
                        f"answers {dict(statuses)}", problems)


class Prober:
    """Sends an event with the token of the hour to one gateway, again and again, and keeps when and what it was told."""

    def __init__(self, gateway, key):
        self.gateway, self.key, self.token, self.answers = gateway, key, None, []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopping.is_set():
            token, began, status = self.token, time.monotonic(), None
            if token is None:
                time.sleep(0.005)
                continue
            try:
                status, _ = request(self.gateway, "POST", "/v1/batch", {"writeKey": self.key, "batch": [
                    {"type": "track", "event": "Probe", "messageId": f"probe-{random.getrandbits(64)}", "userId": "u"}]},
                    {"Authorization": "Bearer " + token})
            except (OSError, http.client.HTTPException):
                pass
            self.answers.append((token, began, time.monotonic(), status))
            time.sleep(0.002)

    def accepted(self, token, since):
        """When it was told 200 to what it began with a token from a time on."""
        return [end for known, begun, end, code in list(self.answers) if known == token and begun > since and code == 200]

    def answered(self, since):
        return any(begun > since and code for _, begun, _, code in self.answers[-50:])


def keys(options, rounds=40):
    made, problems, heard, confirmed = Cluster(options, "keys"), [], [], []
    made.server()
    made.app()
    for _ in range(options.gateways - 1):
        made.gateway()
    gateway, connection = made.wired()
    made.command("enforcement", "set", "shop", "required", "--yes")
    pairs = []
    for number in range(4):
        folder = made.folder / f"key-{number}"
        folder.mkdir()
        made.command("key", "generate", "--out", str(folder))
        token = made.command("token", "create", "--key", str(folder / "private.pem"), "--user", "u")
        pairs.append(((folder / "public.pem").read_text(), token))
    probers = [Prober(gateway, made.key) for gateway in made.gateways]
    gone = []
    for number in range(rounds):
        public, token = pairs[number % len(pairs)]
        is_cut, is_killed = number % 5 == 4, number % 5 == 2
        one, other = random.sample(made.gateways[:-1] if is_cut or is_killed else made.gateways, 2)
        asked = time.monotonic()
        status, answer = request(one, "POST", "/admin/api/apps/shop/keys", {"text": public}, made.admin)
        if status != 201:
            problems.append(f"a key was not added: {status} {answer}")
            break
        identifier, added = answer["id"], time.monotonic()
        for prober in probers:
            prober.token = token
        until("each gateway takes the new key", lambda: all(prober.accepted(token, added) for prober in probers), 30)
        heard += [min(prober.accepted(token, added)) - added for prober in probers]
        if is_cut:
            connection.cut()
        if is_killed:
            gateway.kill()
        began = time.monotonic()
        status, answer = request(other, "DELETE", f"/admin/api/apps/shop/keys/{identifier}", headers=made.admin, timeout=60)
        done = time.monotonic()
        if status not in (200, 204):
            problems.append(f"a key was not deleted: {status} {answer}")
        confirmed.append(done - began)
        gone = [(known, since, min(to, asked) if known == token else to) for known, since, to in gone]
        gone.append((token, done, float("inf")))
        if is_cut:
            connection.mend()
        if is_killed:
            gateway.start()
        until("each gateway answers after the deletion", lambda: all(prober.answered(done) for prober in probers), 60)
        time.sleep(0.3)
        for prober in probers:
            prober.token = None
        time.sleep(0.1)
    for prober in probers:
        prober.stopping.set()
        prober.thread.join(timeout=60)
    late = sum(code == 200 and known == token and since < begun < to
               for token, since, to in gone for prober in probers for known, begun, _, code in prober.answers)
    if late:
        problems.append(f"{late} requests were accepted after the deletion was confirmed")
    codes = Counter(code for prober in probers for *_, code in prober.answers)
    return made.verdict(f"{len(gone)} keys added and deleted, {dict(codes)}; heard after {statistics.median(heard) * 1000:.0f} ms, "
                        f"at most {max(heard):.2f} s; confirmed after {statistics.median(confirmed) * 1000:.0f} ms, "
                        f"at most {max(confirmed):.2f} s", problems)


def audit(options, rounds=20):
    made, problems, done = Cluster(options, "audit"), [], Counter()
    made.server()
    made.app()
    for _ in range(options.gateways):
        made.gateway()

    def change(number):
        gateway = random.choice(made.gateways)
        try:
            status, _ = request(gateway, "POST", "/admin/api/apps", {"id": f"app-{number}", "name": "One of many"}, made.admin)
        except (OSError, http.client.HTTPException):
            status = None
        return number, status

    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(change, number) for number in range(rounds * 10)]
        for _ in range(3):
            time.sleep(0.3)
            victim = random.choice(made.gateways)
            victim.kill()
            victim.start()
        results = dict(future.result() for future in futures)
    done.update(results.values())
    listed = {app["id"] for app in json.loads(made.command("app", "list", "--json"))}
    missing = [number for number, status in results.items() if status == 201 and f"app-{number}" not in listed]
    if missing:
        problems.append(f"{len(missing)} confirmed changes are gone")
    said = json.loads(made.command("audit", "verify", "--json"))
    if not said.get("ok"):
        problems.append(f"audit verify says {said}")
    return made.verdict(f"{dict(done)} to changes by 6 writers, {said.get('entries')} entries", problems)


FAULTS = {fault.__name__: fault for fault in (
    gateways, database, wire, network, unknown, pooler, failover, migrate, rolling, upgrade, clocks, refresh, keys, audit)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=", ".join(FAULTS))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--gateways", type=int, default=3)
    parser.add_argument("--countersign", default=str(SCRIPTS.parent / ".build/debug/countersign-cli"))
    parser.add_argument("--before", help="a program of the version before, for upgrade")
    options = parser.parse_args()
    unheard = [name for name in options.faults if name not in FAULTS]
    if unheard or not os.access(options.countersign, os.X_OK):
        print(f"torture: there is no {unheard[0] if unheard else options.countersign}", file=sys.stderr)
        return 2
    good = True
    for name in options.faults or FAULTS:
        try:
            good = FAULTS[name](options, *([options.rounds] if options.rounds else [])) and good
        except Skipped as reason:
            print(f"{name}: skipped, {reason}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
