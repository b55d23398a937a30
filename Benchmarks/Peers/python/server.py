"""Stores each event once in SQLite before it answers. See README.md."""

import asyncio
import json
import queue
import sqlite3
import sys
import threading
import time
from pathlib import Path

import jwt
import uvicorn
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

APP = 1
MAX_GROUP = 256
# The number of tokens in each of the two generations of the cache.
MAX_TOKENS = 50_000

SCHEMA = """CREATE TABLE IF NOT EXISTS event (
    position INTEGER PRIMARY KEY, app INTEGER NOT NULL, user TEXT NOT NULL, message_id TEXT NOT NULL,
    received_ms INTEGER NOT NULL, body TEXT NOT NULL, UNIQUE (app, user, message_id))"""
INSERTION = """INSERT INTO event (app, user, message_id, received_ms, body) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (app, user, message_id) DO NOTHING"""


class Verifier:
    def __init__(self, pem):
        self.key = load_pem_public_key(pem)
        self.newer, self.older = {}, {}

    def verify(self, token):
        """Returns the user of a valid token."""
        claims = self.newer.get(token)
        if claims is None:
            claims = self.older.get(token)
            if claims is None:
                required = {"require": ["exp", "sub"]}
                claims = jwt.decode(token, self.key, algorithms=["RS256"], options=required)
            if len(self.newer) >= MAX_TOKENS:
                self.older, self.newer = self.newer, {}
            self.newer[token] = claims
        if claims["exp"] <= time.time():
            raise jwt.ExpiredSignatureError
        return claims["sub"]


class Writer(threading.Thread):
    """Commits the waiting requests in one transaction."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.waiting = queue.SimpleQueue()

    async def store(self, rows):
        loop = asyncio.get_running_loop()
        stored = loop.create_future()
        self.waiting.put((rows, loop, stored))
        await stored

    def run(self):
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(SCHEMA)
        while True:
            group = [self.waiting.get()]
            try:
                while len(group) < MAX_GROUP:
                    group.append(self.waiting.get_nowait())
            except queue.Empty:
                pass
            error = None
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(INSERTION, (row for rows, _, _ in group for row in rows))
                connection.execute("COMMIT")
            except sqlite3.Error as failure:
                error = failure
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            group[0][1].call_soon_threadsafe(self.finish, [stored for _, _, stored in group], error)

    @staticmethod
    def finish(group, error):
        for stored in group:
            if stored.cancelled():
                continue
            if error:
                stored.set_exception(error)
            else:
                stored.set_result(None)


async def batch(request):
    authorization = request.headers.get("authorization", "")
    if not authorization.startswith("Bearer ") or request.headers.get("x-write-key") != write_key:
        raise HTTPException(401)
    try:
        user = verifier.verify(authorization[7:])
    except jwt.InvalidTokenError:
        raise HTTPException(401) from None
    now = time.time_ns() // 1_000_000
    rows = []
    try:
        for event in (await request.json())["batch"]:
            if not event["messageId"] or not isinstance(event["messageId"], str):
                raise HTTPException(400)
            if event.get("userId") != user:
                raise HTTPException(401)
            rows.append((APP, user, event["messageId"], now, json.dumps(event)))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise HTTPException(400) from None
    if not rows:
        raise HTTPException(400)
    try:
        await writer.store(rows)
    except sqlite3.Error:
        raise HTTPException(503) from None
    return JSONResponse({"success": True, "accepted": len(rows)})


port, database, key_file, write_key = sys.argv[1:]
verifier = Verifier(Path(key_file).read_bytes())
writer = Writer(database)
writer.start()
application = Starlette(routes=[Route("/v1/batch", batch, methods=["POST"])])
uvicorn.run(
    application, host="127.0.0.1", port=int(port), http="httptools", loop="uvloop", access_log=False, log_level="warning"
)
