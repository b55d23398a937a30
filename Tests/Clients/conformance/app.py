"""Starts device.py and exchanges lines of JSON with it."""
import asyncio
import itertools
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "Clients" / "python" / "src"


class CallFailure(Exception):
    """The error of a call. Its text is the error's code."""


class App:
    """One process of device.py. Calls `heard` with its messages that are not results: events and token requests."""

    def __init__(self, heard):
        self._heard = heard
        self._numbers = itertools.count(1)
        self._results = {}
        self.messages = 0

    async def open(self, mode, configuration, provider):
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-B", HERE / "device.py", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(PACKAGE)}, limit=1 << 24)
        opened = self._results[0] = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read())
        self._write(mode=mode, configuration=configuration, provider=provider)
        await opened

    def _write(self, **members):
        self._process.stdin.write(json.dumps(members).encode() + b"\n")

    async def _read(self):
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            self.messages += 1
            if "id" not in message:
                self._heard(self, message)
                continue
            result = self._results.pop(message["id"])
            # The result is already done if the scenario was cancelled.
            if result.done():
                continue
            if "error" in message:
                result.set_exception(CallFailure(message["error"]))
            else:
                result.set_result(message["value"])
        for result in self._results.values():
            if not result.done():
                result.set_exception(AssertionError("the app has ended"))
                # Marks the exception as retrieved, in case it is never awaited.
                result.exception()

    def begin(self, method, **arguments):
        """Sends a call. Returns a future of its result."""
        number = next(self._numbers)
        result = self._results[number] = asyncio.get_running_loop().create_future()
        self._write(id=number, method=method, arguments=arguments)
        return result

    async def call(self, method, **arguments):
        return await self.begin(method, **arguments)

    def answer(self, serial, token):
        self._write(answer=serial, token=token)

    async def close(self):
        await self.call("close")
        self._process.stdin.close()
        await self._process.wait()

    async def kill(self):
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reader

    def context_switches(self):
        """Returns the context switches of each thread but the main one, which reads calls; None if a thread runs."""
        threads = {}
        folder = f"/proc/{self._process.pid}/task"
        for thread in os.listdir(folder):
            if int(thread) == self._process.pid:
                continue
            try:
                with open(f"{folder}/{thread}/status") as file:
                    status = dict(line.split(":", 1) for line in file)
            except (FileNotFoundError, ProcessLookupError):
                return None
            if status["State"].split()[0] != "S":
                return None
            threads[thread] = [int(status[f"{kind}_ctxt_switches"]) for kind in ("voluntary", "nonvoluntary")]
        return threads
