"""Upgrades data that an earlier release wrote, and kills the new one in the middle: consumers and webhooks continue where they were.

    python3 -m tools upgrade --earlier PROGRAM [--rounds 20] [--postgresql 1]

PROGRAM is `countersign` of the earlier release. Each round begins with a copy of the same data.
"""

import random
import shutil
import time

from .common import check, parse, workshop
from .gateway import Gateway
from .postgresql import PostgreSQL
from .webhooks import Deliveries, create

EVENTS, READ = 4_000, 1_500


def write(gateway, receiver):
    """Data of the earlier release. Returns the header of a reader, and the last position that its consumer has confirmed."""
    gateway.app()
    bearer = gateway.bearer("test", "reader", "shop")
    gateway.start()
    create(gateway, receiver.url, "--batch-size", 100, "--from", "start")
    gateway.run("consumer", "create", "shop", "books", "--from", "start")
    for _ in range(EVENTS // 500):
        gateway.track(500)
    read = 0
    while read < READ:
        read = poll(gateway, bearer)[-1]
    receiver.wait("all events", lambda: len(receiver.taken()) == EVENTS)
    # The position is stored after the response.
    time.sleep(1)
    assert gateway.stop() == 0
    return bearer, read


def poll(gateway, bearer, limit=500):
    """Reads and confirms the consumer's next events; returns their positions."""
    path = "/v1/apps/shop/consumers/books"
    status, batch = gateway.ask("POST", f"{path}/poll", {"limit": limit, "wait": 5}, bearer)
    assert status == 200 and batch["events"], batch
    status, answer = gateway.ask("POST", f"{path}/ack", {"lease": batch["lease"]["id"]}, bearer)
    assert status == 200, answer
    return [event["seq"] for event in batch["events"]]


def upgrade(gateway, bearer, receiver, read, stored):
    """Kills the new release while it starts, then compares where everything continues."""
    before, kills = len(receiver.all), random.randrange(1, 4)
    for _ in range(kills):
        gateway.launch()
        time.sleep(random.random() * 0.4)
        gateway.kill()
    gateway.start()
    found = []
    while not found or found[-1] < stored[-1]:
        found += poll(gateway, bearer)
    assert found == [number for number in stored if number > read], f"the consumer went on with {found[:1]} after {read}"
    gateway.count = EVENTS
    gateway.track(10)
    receiver.wait("new events", lambda: len(receiver.taken()) == EVENTS + 10)
    again = [delivery[2]["events"][0]["seq"] for delivery in receiver.all[before:] if delivery[2]["events"][0]["seq"] <= stored[-1]]
    assert not again, f"the webhook sent again from {again}"
    assert gateway.stop() == 0
    return kills


def numbers(gateway, server, database):
    if server:
        return [int(row[0]) for row in server.rows("SELECT position FROM countersign.event ORDER BY position", database)]
    return [row[0] for row in gateway.rows("SELECT seq FROM event ORDER BY seq")]


def main(arguments):
    options = parse(arguments, "upgrade", __doc__, rounds=20, earlier="", postgresql=0)
    folder, server = workshop(), None
    receiver = Deliveries()
    try:
        if options.postgresql:
            server = PostgreSQL(folder)
            server.make("earlier")
        first = Gateway(options.earlier, folder / "earlier", database=server and server.url("earlier"))
        first.folder.mkdir()
        bearer, read = write(first, receiver)
        stored = numbers(first, server, "earlier")
        delivered, kills = list(receiver.all), 0
        for number in range(options.rounds):
            receiver.all = list(delivered)
            copy = folder / f"round-{number}"
            shutil.copytree(first.folder, copy)
            database = None
            if server:
                server.sql(f"CREATE DATABASE round_{number} TEMPLATE earlier OWNER countersign", "postgres")
                database = server.url(f"round_{number}")
            gateway = Gateway(options.countersign, copy, database=database)
            gateway.key = first.key
            kills += upgrade(gateway, bearer, receiver, read, stored)
            gateway.remove()
        place = "PostgreSQL" if server else "SQLite"
        check(f"{place}: {options.rounds} upgrades with {kills} kills: a consumer and a webhook of {EVENTS} events continue where they were", True)
    finally:
        if server:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
