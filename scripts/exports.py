#!/usr/bin/env python3
"""Kills a gateway while it writes hourly files, fills their disk, and loads them by the commands of docs/exports.md.

Usage: scripts/exports.py [--rounds N] [--countersign PATH]

Exit status: 0 each stored event is in the listed files once, in order, and in each database; 1 otherwise.
"""

import argparse
import hashlib
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
import time
import urllib.request
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = "2026-11-22T19-000001.ndjson.zst"
HOURS = 40
EVENTS = 12_000


def blocks(heading):
    """The code blocks of a part of the page."""
    part = (ROOT / "docs/exports.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```(?:sql|sh)\n(.*?)```", part, re.S)


def serve(program, data, *flags, environment={}):
    with open(f"{data}.log", "w") as log:
        process = subprocess.Popen([program, "serve", "--data", data, "--port", "0", "--log-level", "error", *flags],
                                   stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | environment)
    for line in process.stdout:
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found:
            return process, found.group(0)
    sys.exit("the gateway did not start")


def send(url, key, numbers):
    batch = [{"type": "track", "event": "Order", "messageId": f"m-{number}", "userId": f"u-{number % 97}",
              "properties": {"note": "é\"\\ " + "x" * 80}} for number in numbers]
    body = json.dumps({"batch": batch}).replace('"note"', '"price": 1.10, "note"')
    request = urllib.request.Request(f"{url}/v1/batch", body.encode(), {"X-Write-Key": key, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.status == 200, answer.status


def message_ids(data):
    with sqlite3.connect(f"{data}/events.sqlite") as events:
        return [row[0] for row in events.execute("SELECT message_id FROM event ORDER BY seq")]


def fill(program, data):
    """Stores events, and spreads the times at which they came over the hours that are over."""
    key = subprocess.run([program, "app", "create", "shop", "--data", data], check=True, capture_output=True, text=True).stdout.strip()
    process, url = serve(program, data)
    for start in range(0, EVENTS, 500):
        send(url, key, range(start, start + 500))
    process.terminate()
    process.wait(timeout=30)
    with sqlite3.connect(f"{data}/events.sqlite") as events:
        # Nothing writes it now. The oldest hour first.
        events.execute("UPDATE event SET received_ms = received_ms - 3600000 * (? - seq * ? / ?)", (HOURS, HOURS - 1, EVENTS))
    return key, message_ids(data)


def listed(folder):
    manifest = folder / "manifest.ndjson"
    text = manifest.read_bytes() if manifest.exists() else b""
    return [json.loads(line) for line in text[:text.rfind(b"\n") + 1].splitlines()]


def lines(folder, entry):
    path = folder / entry["file"]
    data = path.read_bytes()
    assert hashlib.sha256(data).hexdigest() == entry["sha256"] and len(data) == entry["bytes"], entry
    return subprocess.run(["zstd", "-dqc", path], check=True, capture_output=True).stdout.decode().splitlines()


def wait_for(what):
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.2)


def check(folder, stored):
    """The listed files, once each stored event is in one of them, in order, and nothing else is in the folder."""
    entries = listed(folder)
    assert sorted(os.listdir(folder)) == sorted([entry["file"] for entry in entries] + ["manifest.ndjson"]), "a file is not listed"
    assert [entry["file"] for entry in entries] == sorted(entry["file"] for entry in entries)
    found = [json.loads(line) for entry in entries for line in lines(folder, entry)]
    assert [event["message_id"] for event in found] == stored, f"{len(found)} events in files, {len(stored)} stored"
    assert all('"price": 1.10' in line for line in lines(folder, entries[0])), "a body was changed"
    assert not any(entry["events_missed"] for entry in entries)
    return entries


def has_all(folder, stored):
    return lambda: sum(entry["events"] for entry in listed(folder)) >= len(stored)


def check_kills(program, data, files, stored, rounds, place):
    folder = files / "shop"
    half, named = 0, 0
    # A disk that takes its time, so that kills find each step under way.
    library = place / "slow-fsync.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, ROOT / "scripts/slow-fsync.c", "-ldl"], check=True)
    slow = {"LD_PRELOAD": str(library), "SLOW_FSYNC_MS": "20"}
    for _ in range(rounds):
        process, _ = serve(program, data, "--event-files", str(files), environment=slow)
        time.sleep(random.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        names = set(os.listdir(folder)) if folder.exists() else set()
        left = names - {entry["file"] for entry in listed(folder)} - {"manifest.ndjson"}
        half += any(name.endswith(".tmp") for name in left)
        named += any(name.endswith(".zst") for name in left)
    process, _ = serve(program, data, "--event-files", str(files))
    wait_for(has_all(folder, stored))
    process.terminate()
    process.wait(timeout=30)
    entries = check(folder, stored)
    print(f"{len(stored)} events once and in order in {len(entries)} files, after {rounds} kills: {half} in the middle of a file, {named} between its name and its line")
    return folder, entries


def check_full_disk(program, data, key, stored, place):
    """A folder on a disk that is full: events are stored as before, and are in files once there is room."""
    small = place / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        print("a full disk: left out, only root may mount one")
        return
    try:
        # Without a floor, so that the disk is really full.
        process, url = serve(program, data, "--event-files", str(small), "--disk-floor-bytes", "0")
        wait_for(lambda: "event files not written" in Path(f"{data}.log").read_text())
        written = sum(entry["events"] for entry in listed(small / "shop"))
        assert 0 < written < len(stored), written
        for number in range(100):
            send(url, key, [EVENTS + number])
        subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
        wait_for(has_all(small / "shop", stored))
        process.terminate()
        process.wait(timeout=30)
        check(small / "shop", stored)
        assert len(message_ids(data)) == len(stored) + 100
        print(f"a full disk: {written} events were in files when it was, 100 more were stored meanwhile, and all came once there was room")
    finally:
        subprocess.run(["umount", str(small)])


def load_duckdb(folder, entries, stored):
    database = duckdb.connect()
    make, take = blocks("DuckDB")
    database.execute(make)
    for entry in entries + entries[:1]:
        if database.execute("SELECT 1 FROM loaded WHERE file = ?", [entry["file"]]).fetchone():
            continue
        database.execute(take.replace("/srv/events/shop", str(folder)).replace(EXAMPLE, entry["file"]))
    ids = [row[0] for row in database.execute("SELECT message_id FROM event ORDER BY seq").fetchall()]
    assert ids == stored, "DuckDB has other events"
    print(f"DuckDB {duckdb.__version__}: {len(ids)} events")


def load_postgresql(folder, entries, stored, place):
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if Path("/usr/lib/postgresql").exists() else []
    if not programs:
        print("PostgreSQL is not installed; left out")
        return
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    cluster = place / "cluster"
    cluster.mkdir()
    if as_user:
        shutil.chown(cluster, "postgres")
        place.chmod(0o711)
    server = programs[-1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*as_user, server / "initdb", "-D", cluster / "data", "-A", "trust", "-U", "postgres"], check=True, cwd="/", **quiet)
    control = [*as_user, server / "pg_ctl", "-D", cluster / "data", "-w"]
    subprocess.run([*control, "-o", f"-k {cluster} -c listen_addresses=''", "start"], check=True, cwd="/", **quiet)
    try:
        environment = os.environ | {"PGHOST": str(cluster), "PGUSER": "postgres", "PGDATABASE": "postgres"}
        make, take = blocks("PostgreSQL")
        subprocess.run(["psql", "-q", "-c", make], check=True, env=environment)
        for entry in entries:
            subprocess.run(["sh", "-c", take.replace("/srv/events/shop", str(folder)).replace(EXAMPLE, entry["file"])], check=True, env=environment)
        ids = subprocess.run(["psql", "-qAt", "-c", "SELECT message_id FROM event ORDER BY seq"], check=True, env=environment, capture_output=True, text=True).stdout.split()
        assert ids == stored, "PostgreSQL has other events"
        body = subprocess.run(["psql", "-qAt", "-c", "SELECT body FROM event LIMIT 1"], check=True, env=environment, capture_output=True, text=True).stdout
        assert "1.10" in body, body
        print(f"PostgreSQL {server.parent.name}: {len(ids)} events")
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], cwd="/", **quiet)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--countersign", default=str(ROOT / ".build/debug/countersign-cli"))
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="exports-"))
    try:
        data, files = str(place / "data"), place / "files"
        key, stored = fill(options.countersign, data)
        folder, entries = check_kills(options.countersign, data, files, stored, options.rounds, place)
        load_duckdb(folder, entries, stored)
        load_postgresql(folder, entries, stored, place)
        check_full_disk(options.countersign, data, key, stored, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


main()
