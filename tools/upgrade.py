"""Upgrades data of an earlier release. Consumers, webhooks, hourly files, streams and sessions must continue, and no event may be lost.

    python3 -m tools upgrade --earlier 7ec05b4d [--package countersign_0.1.0_amd64.deb] [--rounds 20] [--postgresql 1]

`--earlier` is a commit, or the path of a `countersign` built from it. Without `--package` the new program is killed while it starts,
each round on a copy of the same data; the program needs NATS (COUNTERSIGN_NATS=1). With `--package` the earlier program is packed as
version 0.0.9, runs in a booted Debian, and is upgraded under load with dpkg: on SQLite, on PostgreSQL, and as two gateways on
PostgreSQL (needs root).
"""

import base64
import ctypes
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from .audit import ERRORS, Consumer, Follower, Load, account, lines, listed, token_of
from .common import ROOT, check, output, parse, preloaded, until, workshop
from .gateway import Gateway
from .nats import NATS, STREAM, Client, differences
from .postgresql import PostgreSQL
from .release import debian, program
from .torture.trial import STORED
from .webhooks import Deliveries, create, in_order

EVENTS, READ = 4_000, 1_500
# The earlier release writes half of the events to hourly files and to a stream. The files cover this many hours.
HALF, HOURS = EVENTS // 2, 40
# The number of events, and the users, in an upgrade under load.
MANY, USERS = 100_000, [f"user-{number}" for number in range(12)]


def opened(program, folder, name, server, **more):
    """A gateway with hourly files, on a folder or a database of this name."""
    return Gateway(program, folder / name, name, database=server and server.url(name),
                   flags=("--event-files", folder / name / "files"), **more)


def write(gateway, receiver, nats, server):
    """Writes data with the earlier release. Returns the reader's Authorization header, and the consumer's last acknowledged position."""
    gateway.app()
    bearer = gateway.bearer("test", "reader", "shop")
    gateway.start()
    create(gateway, receiver.url, "--batch-size", 100, "--from", "start")
    gateway.run("consumer", "create", "shop", "books", "--from", "start")
    gateway.run("sink", "create", "shop", "out", nats.url, STREAM)
    for _ in range(HALF // 500):
        gateway.track(500)
    until("half of the events in the stream",
          lambda: json.loads(gateway.run("sink", "show", "shop", "out", "--json"))["stream_seq"] == HALF)
    # Without messages in the stream, only the gateway's data has the stream's position.
    with Client(nats.port) as client:
        assert client.ask(f"STREAM.PURGE.{STREAM}")["purged"] == HALF
    nats.process.terminate()
    nats.process.wait()
    age(gateway, server)
    gateway.start()
    until("half of the events in files", lambda: written(gateway) >= HALF)
    for _ in range(HALF // 500):
        gateway.track(500)
    read = 0
    while read < READ:
        read = poll(gateway, bearer)[-1]
    receiver.wait("all events", lambda: len(receiver.taken()) == EVENTS)
    # The gateway stores the webhook's position after the receiver's response.
    until("the webhook's position", lambda: committed(gateway) >= max(receiver.taken()))
    age(gateway, server, HALF)
    return bearer, read


def age(gateway, server, after=0):
    """Stops the gateway, and spreads the times of its events, except the first `after` events, over past hours, the oldest first."""
    assert gateway.stop() == 0
    table, position = ("countersign.event", "position") if server else ("event", "seq")
    sql = f"""
        UPDATE {table} SET received_ms = received_ms - 3600000 * ({HOURS} - number * {HOURS - 1} / {EVENTS})
        FROM (SELECT {position} AS place, row_number() OVER (ORDER BY {position}) AS number FROM {table}) AS numbered
        WHERE {position} = place AND number > {after}"""
    if server:
        server.sql(sql, gateway.name)
    else:
        with sqlite3.connect(gateway.data / "events.sqlite") as events:
            events.execute(sql)


def written(gateway):
    """The number of events in the listed files."""
    return sum(entry["events"] for entry in listed(gateway.folder / "files/shop"))


def committed(gateway):
    """The webhook's position in the event log. On PostgreSQL it may be greater than the last event's position."""
    return json.loads(gateway.run("webhook", "list", "shop", "--json"))[0]["committed_seq"]


def poll(gateway, bearer, limit=500):
    """Reads and acknowledges the consumer's next events. Returns their positions."""
    path = "/v1/apps/shop/consumers/books"
    status, batch = gateway.ask("POST", f"{path}/poll", {"limit": limit, "wait": 5}, bearer)
    assert status == 200 and batch["events"], batch
    status, answer = gateway.ask("POST", f"{path}/ack", {"lease": batch["lease"]["id"]}, bearer)
    assert status == 200, answer
    return [event["seq"] for event in batch["events"]]


def upgrade(gateway, bearer, receiver, nats, read, stored, server):
    """Kills the new release while it starts, then checks where the readers continue. Returns the number of kills, and the number of
    kills between the first and the last event that the new release writes to files or publishes."""
    folder, before, kills, halfway = gateway.folder / "files/shop", len(receiver.all), random.randrange(1, 4), 0
    earlier = listed(folder)
    for _ in range(kills):
        gateway.launch()
        time.sleep(random.random() * 2)
        gateway.kill()
        halfway += HALF < written(gateway) < EVENTS or 0 < nats.count() < EVENTS - HALF
    gateway.start()
    found = []
    while not found or found[-1] < stored[-1]:
        found += poll(gateway, bearer)
    assert found == [number for number in stored if number > read], f"after position {read} the consumer read {found[:1]}"
    gateway.count = EVENTS
    gateway.track(10)
    receiver.wait("new events", lambda: len(receiver.taken()) == EVENTS + 10)
    again = [delivery[2]["events"][0]["seq"] for delivery in receiver.all[before:] if delivery[2]["events"][0]["seq"] <= stored[-1]]
    assert not again, f"the webhook delivered these events again: {again}"
    until("all events in files", lambda: written(gateway) >= EVENTS)
    until("all events in the stream", lambda: nats.count() >= EVENTS - HALF + 10)
    assert gateway.stop() == 0
    entries, events = listed(folder), stored_events(gateway, server, gateway.name)
    assert entries[:len(earlier)] == earlier and not any(entry["events_missed"] for entry in entries), "a listed file was changed"
    assert {path.name for path in folder.iterdir()} == {"manifest.ndjson", *(entry["file"] for entry in entries)}, "a file is not listed"
    found = [json.loads(line)["seq"] for entry in entries for line in lines(folder, entry)]
    # Files have the ten new events only if their hour has ended.
    assert found == [event[0] for event in events][:len(found)], f"the {len(found)} events in files are not the stored events"
    published = [event[2] for event in events][HALF:]
    assert nats.ids() == published, differences(published, nats.ids())
    return kills, halfway


# MARK: Upgrades under load


class Service(Gateway):
    """The service of the Debian package, in a copy of a Debian root that is booted with systemd."""

    def __init__(self, base, folder, name, database):
        super().__init__("countersign", folder / name, name)
        output("cp", "-a", base, self.folder)
        self.program, self.data = "countersign", self.folder / "var/lib/countersign"
        self.environment = {"COUNTERSIGN_DATA": "/var/lib/countersign", **({"COUNTERSIGN_DATABASE": database} if database else {})}
        # All gateways on a database need the same token key.
        output("install", "-m", "600", "-o", self.data.stat().st_uid, "-g", self.data.stat().st_gid, folder / "token-key", self.data)
        with open(self.folder / "etc/countersign/countersign.conf", "a") as file:
            file.writelines(f"{setting}={value}\n" for setting, value in (self.environment | {"COUNTERSIGN_PORT": self.port}).items())
        self.init = output("scripts/booted.sh", "boot", self.folder)
        self.inside = ("nsenter", "-t", self.init, "-m", "-p", "-u", "-i", "-C", "-r", "-w", "env", "-u", "TMPDIR")

    def run(self, *arguments):
        return super().run(*arguments, through=(*self.inside, "runuser", "-u", "countersign", "--"))

    def is_ready(self):
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except ERRORS:
            return False

    def upgrade(self, package):
        """Installs a package. Returns the seconds from the start of dpkg until the new program is ready."""
        shutil.copy(package, self.folder / "new.deb")
        before, began = self.process_id(), time.monotonic()
        output(*self.inside, "env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "-i", "/new.deb", stdin=subprocess.DEVNULL)
        until(f"{self.name} after the upgrade", self.is_ready, 300)
        assert self.process_id() not in ("0", before), "the upgrade did not restart the service"
        return time.monotonic() - began

    def process_id(self):
        return output(*self.inside, "systemctl", "show", "-p", "MainPID", "--value", "countersign")

    def remove(self):
        os.kill(int(self.init), signal.SIGKILL)
        until(f"{self.name} has ended", lambda: not os.path.exists(f"/proc/{self.init}"))
        super().remove()


def fill(gateway, headers):
    """Stores `MANY` events. Returns (user, message id) of each."""
    filled = []
    for first in range(0, MANY, 500):
        user = USERS[first // 500 % len(USERS)]
        events = [{"type": "track", "event": "Order", "userId": user, "messageId": f"m-{first + number}", "properties": {"total": 1.10}}
                  for number in range(500)]
        status, answer = gateway.batch(events, headers=headers[user], timeout=60)
        assert status == 200 and answer["accepted"] == 500, answer
        filled += [(user, event["messageId"]) for event in events]
    return filled


def refresh(gateway, token):
    """Exchanges a refresh token. Returns the new refresh token and an access token."""
    status, answer = gateway.ask("POST", "/api/refresh_token", {"refresh_token": token})
    assert status == 200, answer
    return answer["refreshToken"], answer["accessToken"]


def rehearse(what, base, folder, package, signer, server=None, gateways=1):
    database, name = None, f"rehearsal_{gateways}_{'postgresql' if server else 'sqlite'}"
    if server:
        server.make(name)
        database = server.url(name)
    services = []
    try:
        for number in range(gateways):
            services.append(Service(base, folder, f"{name}-{number}", database))
            until(f"{services[-1].name} after the boot", services[-1].is_ready)
        under_load(what, services, package, signer, lambda: stored_events(services[0], server, name))
    finally:
        for service in services:
            service.remove()


def stored_events(gateway, server, database):
    if not server:
        return gateway.history()
    return [(int(position), *others) for position, *others in server.rows(STORED, database)]


def under_load(what, services, package, signer, stored):
    first, receiver = services[0], Deliveries()
    key = first.app()
    shutil.copyfile(signer.path("good", "public.pem"), first.path("tmp/public.pem"))
    first.run("key", "add", "shop", "/tmp/public.pem")
    first.run("enforcement", "set", "shop", "required")
    headers = {user: {"X-Write-Key": key, "Authorization": f"Bearer {signer.token(user, 'good', '--claim', f'jti={token_of(user)}')}"} for user in USERS}
    reader = first.bearer("reader", "reader", "shop")
    receiver.secrets = [create(first, receiver.url, "--from", "start")[1]]
    for consumer in ("books", "named"):
        first.run("consumer", "create", "shop", consumer, "--from", "start")
    until("the key is in use", lambda: first.batch([], headers=headers[USERS[0]])[0] != 401)
    filled, read = fill(first, headers), 0
    while read < MANY // 2:
        read = poll(first, reader)[-1]
    sessions = {user: refresh(first, first.run("session", "create", "shop", "--user", user)) for user in USERS}
    load = Load(services, key, users=headers)
    load.sent.update(filled)
    readers = [kind(name, services, reader) for kind, name in ((Follower, "by position"), (Consumer, "named"))]
    for one in readers:
        one.limit = 1000
    until("the load", lambda: len(load.acknowledged) > 500)
    load.gap, load.last, before = 0, time.monotonic(), load.answers.copy()
    seconds = [service.upgrade(package) for service in services]
    enough = len(load.acknowledged) + 500
    until("the load after the upgrade", lambda: len(load.acknowledged) > enough)
    told = load.answers - before
    load.stop()
    for one in readers:
        one.stop()
    load.acknowledged.update(filled)
    log = stored()
    problems = account(log, load, readers)
    check(f"{what}: {len(load.acknowledged)} acknowledged events are stored once, and two readers saw each", not problems, problems)
    check(f"{what}: upgraded in {' and '.join(f'{one:.1f} s' for one in seconds)}; longest gap between acknowledgements {load.gap:.1f} s, "
          f"{told[200]} requests stored, {told[503]} answered 503, {told[None]} without a connection", not told.keys() - {200, 503, None}, told)
    if len(services) > 1:
        check(f"{what}: a client that tries both gateways never waits for a restart", load.gap < min(seconds), load.gap)
    found, numbers = [], [row[0] for row in log]
    while not found or found[-1] < numbers[-1]:
        found += poll(first, reader)
    check(f"{what}: the consumer continues after event {read}", found == [number for number in numbers if number > read], found[:1])
    receiver.wait("every event", lambda: receiver.taken() >= set(numbers), 300)
    again = in_order(receiver, numbers)
    check(f"{what}: {len(receiver.all)} webhook deliveries without a gap, {again} events were delivered again", not receiver.wrong, receiver.wrong)
    for user, (token, access) in sessions.items():
        for service in services:
            event = {"type": "track", "event": "Session", "userId": user, "messageId": f"{user}-{service.port}"}
            status, answer = service.batch([event], headers={"X-Write-Key": key, "Authorization": f"Bearer {access}"})
            assert status == 200 and answer["accepted"] == 1, answer
            token, access = refresh(service, token)
    check(f"{what}: {len(sessions)} sessions and their access tokens work", True)
    first.run("doctor")
    first.run("audit", "verify")
    check(f"{what}: `countersign doctor` and `audit verify` find no problem", True)


def rehearsals(options, folder):
    """Runs the three upgrades under load in a new network namespace, which services, PostgreSQL and clients share."""
    os.environ["SOURCE_DATE_EPOCH"] = output("git", "log", "-1", "--format=%ct")
    old = debian(program(options.earlier), folder, "0.0.9")
    output("scripts/booted.sh", "make", folder / "base", old, timeout=1800)
    CLONE_NEWNET = 0x40000000
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("upgrade: ended"))
    assert ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0, "a network namespace needs root"
    output("ip", "link", "set", "lo", "up")
    # The new program signs the tokens, because the earlier program cannot add the claim `jti` that the checker reads.
    signer = Gateway(options.countersign, folder)
    signer.pairs("good")
    (folder / "token-key").write_text(base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("="))
    arguments = (folder / "base", folder, options.package, signer)
    rehearse("SQLite", *arguments)
    server = PostgreSQL(folder)
    try:
        rehearse("PostgreSQL", *arguments, server)
        rehearse("two gateways on PostgreSQL", *arguments, server, 2)
    finally:
        server.stop()


def built(commit):
    """Builds `countersign` from a commit, if needed. Returns its path."""
    folder = ROOT / f".build/earlier/{commit}"
    found = folder / ".build/release/countersign-cli"
    if not found.exists():
        folder.mkdir(parents=True, exist_ok=True)
        output("git", "archive", "-o", folder / "source.tar", commit)
        output("tar", "-xf", folder / "source.tar", "-C", folder)
        output("scripts/setup.sh", cwd=folder, timeout=1800)
        output("swift", "build", "-c", "release", "--static-swift-stdlib", "--product", "countersign-cli", cwd=folder, timeout=7200)
    return found


def main(arguments):
    options = parse(arguments, "upgrade", __doc__, rounds=20, earlier="", postgresql=0, package="")
    options.earlier = Path(options.earlier) if "/" in options.earlier else built(options.earlier)
    folder, server, nats = workshop("/var/tmp/countersign-"), None, None
    receiver = Deliveries()
    try:
        if options.package:
            return rehearsals(options, folder)
        if options.postgresql:
            server = PostgreSQL(folder)
            server.make("earlier")
        nats = NATS(folder / "nats")
        nats.start()
        first = opened(options.earlier, folder, "earlier", server)
        first.folder.mkdir()
        bearer, read = write(first, receiver, nats, server)
        stored = [event[0] for event in stored_events(first, server, first.name)]
        shutil.copytree(nats.files, folder / "stream")
        # With slow flushes a kill can hit each step of a migration and of writing a file.
        slow = preloaded("slow-fsync", folder) | {"SLOW_FSYNC_MS": "20"}
        delivered, kills, halfway = list(receiver.all), 0, 0
        for number in range(options.rounds):
            receiver.all = list(delivered)
            gateway = opened(options.countersign, folder, f"round_{number}", server, environment=slow)
            shutil.copytree(first.folder, gateway.folder)
            if server:
                server.sql(f"CREATE DATABASE {gateway.name} TEMPLATE earlier OWNER countersign", "postgres")
            nats.kill()
            shutil.rmtree(nats.files)
            shutil.copytree(folder / "stream", nats.files)
            nats.start()
            gateway.key = first.key
            killed, within = upgrade(gateway, bearer, receiver, nats, read, stored, server)
            kills, halfway = kills + killed, halfway + within
            gateway.remove()
        assert halfway or options.rounds < 20, "no kill came between the first and the last event: repeat with more rounds"
        check(f"{'PostgreSQL' if server else 'SQLite'}: {options.rounds} upgrades with {kills} kills, {halfway} of them while files or the "
              f"stream were incomplete: a consumer, a webhook, hourly files and a stream of {EVENTS} events continue where they were", True)
    finally:
        if nats:
            nats.kill()
        if server:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
