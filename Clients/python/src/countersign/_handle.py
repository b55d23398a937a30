"""The base class of the three clients."""
from __future__ import annotations

import atexit
import ctypes
import itertools
import json
import logging
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, TypeVar

from ._library import CLOSED, FORKED, OK, PROVIDER, RESULT, library
from ._values import is_argument, to_json

JSON = Any
Self = TypeVar("Self", bound="Handle")


class CountersignError(Exception):
    """An error of a client. It never holds a token, a key or an event.

    ``code`` is a stable word such as ``invalid_configuration``. If ``retryable``, the call may succeed later.
    """

    def __init__(self, code: str, detail: str, *, status: Optional[int] = None, auth_code: Optional[int] = None,
                 retryable: bool = False, retry_after: Optional[float] = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.status = status
        self.auth_code = auth_code
        self.retryable = retryable
        self.retry_after = retry_after

    @classmethod
    def _of(cls, members: Mapping[str, JSON]) -> CountersignError:
        return cls(members["code"], members["detail"], status=members.get("status"), auth_code=members.get("authCode"),
                   retryable=members.get("retryable", False), retry_after=members.get("retryAfter"))


@dataclass(frozen=True)
class FlushBatch:
    """The result of one request."""

    user_id: Optional[str]
    events: int
    delivered: int
    outcome: str
    code: str


@dataclass(frozen=True)
class FlushResult:
    """The result of a flush. ``ending``: ``drained`` if all events were sent, otherwise a reason such as ``parked``."""

    delivered: int
    queued: int
    ending: str
    batches: list[FlushBatch]

    @classmethod
    def _of(cls, members: Mapping[str, JSON]) -> FlushResult:
        return cls(members["delivered"], members["queued"], members["ending"], [
            FlushBatch(batch["userId"], batch["events"], batch["delivered"], batch["outcome"], batch["code"])
            for batch in members["batches"]])


class _Result(Future[JSON]):
    """The result of a call. Each callback has a thread of its own, so that it may wait for other calls."""

    def add_done_callback(self, fn: Callable[[Future[JSON]], object]) -> None:
        super().add_done_callback(
            lambda future: threading.Thread(target=fn, args=(future,), name="countersign-callback", daemon=True).start())


_numbers = itertools.count(1)
_pending: dict[int, _Result] = {}
_open: dict[int, Handle] = {}


def _text(pointer: Any, length: int) -> JSON:
    return json.loads(ctypes.string_at(pointer, length))


def _result(context: int, pointer: Any, length: int) -> None:
    answer = _text(pointer, length)
    future = _pending.pop(context, None)
    if future is None or not future.set_running_or_notify_cancel():
        return
    if "error" in answer:
        future.set_exception(CountersignError._of(answer["error"]))
    else:
        future.set_result(answer["value"])


def _event(context: int, pointer: Any, length: int) -> None:
    handle = _open.get(context)
    if handle is not None:
        handle._events.put(_text(pointer, length))


def _provider(context: int, number: int, pointer: Any, length: int) -> None:
    handle = _open.get(context)
    if handle is not None:
        request = _text(pointer, length)
        try:
            # The provider may block, so it gets a thread of its own.
            threading.Thread(target=handle._ask, args=(number, request), name="countersign-provider", daemon=True).start()
        except BaseException:
            # Answer even if no thread can be created, because the library waits for an answer.
            handle._answer(number, None)
            raise


# Keep references, so that the callbacks are not freed while the library may call them.
_RESULT, _EVENT, _PROVIDER, _NO_PROVIDER = RESULT(_result), RESULT(_event), PROVIDER(_provider), PROVIDER(0)
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}


class Handle:
    """A client. Use it in a ``with`` statement, or call :meth:`close`.

    Methods may be called from any thread. The future of a recording method is done when the event is on disk. Each
    callback of a future runs on a thread of its own, and may wait for other calls.

    Properties may have values of any type (docs/reference/event-format.md). No value makes a method raise.
    """

    def __init__(self, mode: str, configuration: Mapping[str, JSON], *, logger: Optional[logging.Logger],
                 provider: Optional[Callable[[Mapping[str, JSON]], Optional[str]]] = None) -> None:
        self._logger = logger or logging.getLogger("countersign")
        self._provide = provider
        self._events: queue.SimpleQueue[Optional[dict[str, JSON]]] = queue.SimpleQueue()
        self._ready = threading.Event()
        self._pointer: Optional[int] = None
        self._number = next(_numbers)
        level = next((name for name, value in _LEVELS.items() if self._logger.isEnabledFor(value)), "none")
        context = {"library": "countersign-python", **(configuration.get("context") or {})}
        given = self._json({"logLevel": level, **configuration, "context": context})
        callbacks: list[Any] = [_EVENT, self._number]
        if mode != "access_token":
            callbacks.insert(0, _PROVIDER if provider else _NO_PROVIDER)
        error, length = ctypes.c_void_p(), ctypes.c_size_t()
        _open[self._number] = self
        self._listener = threading.Thread(target=self._listen, name="countersign-events", daemon=True)
        self._listener.start()
        try:
            self._pointer = getattr(library(), f"countersign_open_{mode}")(
                given, len(given), *callbacks, ctypes.byref(error), ctypes.byref(length))
            if not self._pointer:
                try:
                    raise CountersignError._of(_text(error.value, length.value))
                finally:
                    library().countersign_free(error)
        except BaseException:
            del _open[self._number]
            self._events.put(None)
            raise
        finally:
            self._ready.set()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self, timeout: Optional[float] = None) -> None:
        """Stores pending events and ends all work. The next client with this queue sends the remaining events."""
        handle = _open.pop(self._number, None)
        if handle is None:
            return
        future = self._future()
        status = library().countersign_close(self._pointer, _RESULT, future[0])
        self._events.put(None)
        if status != OK:
            _pending.pop(future[0], None)
            return
        future[1].result(timeout)
        if threading.current_thread() is not self._listener:
            self._listener.join(timeout)

    # Calls

    def _future(self) -> tuple[int, _Result]:
        number, future = next(_numbers), _Result()
        _pending[number] = future
        return number, future

    def _json(self, members: Mapping[str, JSON]) -> bytes:
        return to_json(members, lambda kind: self._logger.warning("a value is left out: its type is not supported type=%s", kind))

    # The parameters are positional-only, because arguments may have any name, even `method` or `self`.
    def _call(self, method: str, /, **arguments: JSON) -> Future[JSON]:
        for name, value in arguments.items():
            if not is_argument(value):
                future = _Result()
                future.set_exception(CountersignError("invalid_argument", f"{name} must not be of type {type(value).__name__}"))
                return future
        return self._send(method, arguments)

    def _send(self, method: str, arguments: Mapping[str, JSON]) -> Future[JSON]:
        text = self._json(arguments)
        number, future = self._future()
        name = method.encode()
        status = library().countersign_call(self._pointer, name, len(name), text, len(text), _RESULT, number)
        if status != OK:
            _pending.pop(number, None)
            future.set_exception({
                CLOSED: CountersignError("closed", "the client is closed"),
                FORKED: CountersignError("forked", "the process was forked after the client was opened; open a client in the child process"),
            }.get(status, CountersignError("invalid_argument", "a text is not UTF-8")))
        return future

    def _wait(self, method: str, timeout: Optional[float] = None, /, **arguments: JSON) -> JSON:
        return self._call(method, **arguments).result(timeout)

    def snapshot(self) -> dict[str, JSON]:
        """Event counts (``queued``, ``sent``…), and the users whose events wait (``parked``)."""
        found: dict[str, JSON] = self._wait("snapshot")
        return found

    def quarantined_events(self) -> list[dict[str, JSON]]:
        """The events in quarantine, with ``messageId``, ``userId``, ``code``, ``reason``, ``date``, ``body``."""
        found: list[dict[str, JSON]] = self._wait("quarantinedEvents")
        return found

    def requeue_quarantined_events(self) -> int:
        """Puts quarantined events back into the queue; returns their number."""
        return int(self._wait("requeueQuarantinedEvents"))

    def delete_quarantined_events(self) -> int:
        """Deletes quarantined events permanently; returns their number."""
        return int(self._wait("deleteQuarantinedEvents"))

    # Callbacks

    def _ask(self, number: int, request: Mapping[str, JSON]) -> None:
        encoded = None
        try:
            encoded = self._encoded(self._provide(request)) if self._provide else None
        # Catch SystemExit too, which would end only this thread.
        except BaseException:
            self._logger.exception("the token provider failed")
        finally:
            self._answer(number, encoded)

    @staticmethod
    def _encoded(token: Any) -> Optional[bytes]:
        if token is None:
            return None
        if not isinstance(token, str):
            raise TypeError(f"a token must be a str, not {type(token).__name__}")
        return token.encode() or None

    def _answer(self, number: int, token: Optional[bytes]) -> None:
        # The request may arrive before the pointer is set.
        self._ready.wait()
        library().countersign_answer(self._pointer, number, token, len(token) if token else 0)

    def _listen(self) -> None:
        for event in iter(self._events.get, None):
            try:
                if event["event"] == "log":
                    values = event["values"]
                    words = "".join(f" {name}={value}" for name, value in sorted(values.items()))
                    self._logger.log(_LEVELS[event["level"]], "%s%s", event["message"], words)
                else:
                    self._heard(event)
            # Catch SystemExit too, so that later events are handled.
            except BaseException:
                self._logger.exception("a handler failed")

    def _heard(self, event: Mapping[str, JSON]) -> None:
        """Handles an event other than a log line, on the listener's thread."""


@atexit.register
def _close_all() -> None:
    # The library's threads must not call into a finalized interpreter.
    for handle in list(_open.values()):
        try:
            handle.close(timeout=10)
        except Exception as error:  # such as a time-out
            handle._logger.warning("a client was not closed in time: %r", error)
