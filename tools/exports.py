"""Kills a gateway while it writes hourly files, fills their disk, and loads the files into DuckDB and PostgreSQL as
docs/guides/export-files.md says. Each stored event must be in the files and in each database, once and in order."""

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import time

import duckdb

from .audit import columns, compare, lines, listed
from .common import ROOT, Skipped, output, parse, preloaded, until, workshop
from .gateway import Gateway
from .postgresql import PostgreSQL, program

EXAMPLE = "2026-11-22T19-000001.ndjson.zst"
HOURS, EVENTS = 40, 12_000


def blocks(heading):
    """The code blocks below a heading of docs/guides/export-files.md."""
    part = (ROOT / "docs/guides/export-files.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```(?:sql|sh)\n(.*?)```", part, re.S)


def send(gateway, numbers):
    batch = [{"type": "track", "event": "Order", "messageId": f"m-{number}", "userId": f"u-{number % 97}",
              "properties": {"note": "é\"\\ " + "x" * 80}} for number in numbers]
    # The files must have 1.10 as sent, and not 1.1.
    body = json.dumps({"batch": batch, "writeKey": gateway.key}).replace('"note"', '"price": 1.10, "note"')
    status, answer = gateway.ask("POST", "/v1/batch", body)
    assert status == 200, answer
    gateway.acknowledged.update((event["userId"], event["messageId"]) for event in batch)


def fill(gateway):
    """Stores events, and spreads their times over past hours, the oldest first."""
    gateway.app()
    gateway.start()
    for start in range(0, EVENTS, 500):
        send(gateway, range(start, start + 500))
    gateway.stop()
    with sqlite3.connect(gateway.data / "events.sqlite") as events:
        events.execute("UPDATE event SET received_ms = received_ms - 3600000 * (? - seq * ? / ?)", (HOURS, HOURS - 1, EVENTS))


def audit(folder, gateway, stored, more=0):
    """Waits until the listed files have all events, and compares them. The folder must have no other files. Up to
    `more` later events may also be in files, if their hour has ended."""
    until("all events in files", lambda: sum(entry["events"] for entry in listed(folder)) >= len(stored), pause=0.2)
    entries = listed(folder)
    names = [entry["file"] for entry in entries]
    assert sorted(os.listdir(folder)) == sorted([*names, "manifest.ndjson"]), "a file is not listed"
    assert names == sorted(names)
    found = [json.loads(line) for entry in entries for line in lines(folder, entry)]
    compare("files", gateway, stored, columns(found[:max(len(stored), len(found) - more)]))
    assert all('"price": 1.10' in line for line in lines(folder, entries[0])), "a body was changed"
    assert not any(entry["events_missed"] for entry in entries)
    return entries


def kills(gateway, folder, stored, rounds):
    # With slow flushes a kill can hit each step of writing a file.
    slow = {} if gateway.disk else preloaded("slow-fsync", gateway.folder) | {"SLOW_FSYNC_MS": "20"}
    half = named = 0
    gateway.environment |= slow
    for _ in range(rounds):
        gateway.start()
        time.sleep(random.uniform(0, 0.3))
        gateway.kill()
        left = {path.name for path in folder.glob("*")} - {entry["file"] for entry in listed(folder)}
        half += any(name.endswith(".tmp") for name in left)
        named += any(name.endswith(".zst") for name in left)
    gateway.environment = {name: value for name, value in gateway.environment.items() if name not in slow}
    gateway.start()
    entries = audit(folder, gateway, stored)
    gateway.stop()
    print(f"{len(entries)} files after {rounds} {'power failures' if gateway.disk else 'kills'}: {half} in the middle of a file, "
          f"{named} between the rename of a file and its line in the manifest", flush=True)
    return entries


def full_disk(options, gateway, stored):
    """The gateway stores events while the disk of its hourly files is full, and writes them to files once the disk has space."""
    small = gateway.folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", small], capture_output=True).returncode:
        return print("a full disk: skipped, mounting a small disk needs root")
    # Without disk-floor-bytes, which would stop the writing before the disk is full.
    writer = Gateway(options.countersign, gateway.folder, "full", flags=("--event-files", small, "--disk-floor-bytes", "0"),
                     environment={"COUNTERSIGN_DATA": str(gateway.data)})
    writer.key = gateway.key
    try:
        writer.start()
        until("a full disk", lambda: "event files not written" in writer.log.read_text(), pause=0.2)
        written = sum(entry["events"] for entry in listed(small / "shop"))
        assert 0 < written < len(stored), written
        for number in range(100):
            send(writer, [EVENTS + number])
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        audit(small / "shop", gateway, stored, more=100)
        writer.stop()
        assert len(writer.stored()) == len(stored) + 100
        print(f"a full disk: {written} events were in files, 100 more were stored meanwhile, and all were in files once the disk had space")
    finally:
        writer.kill()
        subprocess.run(["umount", "-l", small], check=False)


def load_duckdb(folder, entries, gateway, stored):
    database = duckdb.connect()
    make, take = blocks("DuckDB")
    database.execute(make)
    for entry in entries + entries[:1]:
        if not database.execute("SELECT 1 FROM loaded WHERE file = ?", [entry["file"]]).fetchone():
            database.execute(take.replace("/srv/events/shop", str(folder)).replace(EXAMPLE, entry["file"]))
    ids = [row[0] for row in database.execute("SELECT message_id FROM event ORDER BY seq").fetchall()]
    compare(f"DuckDB {duckdb.__version__}", gateway, stored, ids)


def load_postgresql(folder, entries, gateway, stored):
    server = PostgreSQL(gateway.folder)
    try:
        make, take = blocks("PostgreSQL")[:2]
        server.sql(make, "postgres")
        environment = {**os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "postgres", "PGDATABASE": "postgres",
                       "PATH": f"{os.path.dirname(program('psql'))}:{os.environ['PATH']}"}
        for entry in entries:
            output("sh", "-c", take.replace("/srv/events/shop", str(folder)).replace(EXAMPLE, entry["file"]), env=environment)
        compare("PostgreSQL", gateway, stored, server.sql("SELECT message_id FROM event ORDER BY seq", "postgres").split())
        assert "1.10" in server.sql("SELECT body FROM event LIMIT 1", "postgres")
    finally:
        server.stop()


def main(arguments):
    options = parse(arguments, "exports", __doc__, rounds=20, power=False)
    place = workshop()
    files = place / "disk/files"
    gateway = Gateway(options.countersign, place, flags=("--event-files", files), environment={"COUNTERSIGN_DATA": str(place / "disk/data")})
    try:
        fill(gateway)
        folder, stored = files / "shop", gateway.history()
        shutil.rmtree(files, ignore_errors=True)
        if options.power:
            gateway.model_power(place / "disk")
        entries = kills(gateway, folder, stored, options.rounds)
        load_duckdb(folder, entries, gateway, stored)
        try:
            load_postgresql(folder, entries, gateway, stored)
        except Skipped as reason:
            print(f"PostgreSQL: skipped, {reason}")
        full_disk(options, gateway, stored)
    finally:
        gateway.kill()
        shutil.rmtree(place, ignore_errors=True)
