"""Reads the events of a Countersign gateway, and verifies deliveries of its webhooks. Python 3.9, standard library only.

    with Consumer("https://collect.example", "shop", token, "billing") as consumer:
        for batch in consumer:
            with database:             # one transaction: the work, and batch.position
                ...
            batch.ack()                # after the commit, never before

Copy this file into your project. docs/guides/read-events.md describes the gateway's guarantees.
"""

import base64
import binascii
import email.utils
import hashlib
import hmac
import http.client
import json
import random
import re
import threading
import time
import urllib.parse
import zlib

__all__ = ["Batch", "Consumer", "ConsumerError", "Page", "WebhookError", "read_events", "verify_webhook"]

WAIT = 30
"""Seconds that the gateway waits for events before it sends an empty response."""
SLACK = 15
LONGEST_ANSWER = 32 * 1024 * 1024
FIRST_PAUSE, LONGEST_PAUSE, LONGEST_RETRY_AFTER = 0.5, 30, 3600
LEAST_WAIT = 1
"""The minimum seconds between two polls without events, because a gateway that is stopping answers without waiting."""
NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,64}\Z")


class ConsumerError(Exception):
    """An error that a retry does not solve. `code` is a stable word, such as `forbidden`.

    `status` is the status of the response, or None. The gateway defines the codes, except `invalid_configuration` and
    `unexpected_answer`.
    """

    def __init__(self, code, reason, status=None):
        super().__init__(f"{code}: {reason}" if status is None else f"{code} (status {status}): {reason}")
        self.code, self.reason, self.status = code, reason, status


class WebhookError(Exception):
    """A rejected delivery: `signature_missing`, `signature_invalid` or `timestamp_out_of_tolerance`.

    `invalid_configuration`: a secret is malformed.
    """

    def __init__(self, code, reason):
        super().__init__(f"{code}: {reason}")
        self.code = code


class Page:
    """Events read by position. Store `next` together with your work, and continue with it."""

    def __init__(self, answer):
        self.events = answer["events"]
        self.next = answer["next"]
        self.events_missed = answer["events_missed"]


class Batch:
    """Events leased to this worker until they are acknowledged or released, or the lease expires.

    `events` are the gateway's objects, in the order of storing. `partition` is the number of the consumer's partition.
    With `parse_float=Decimal`, numbers with a fraction in their bodies are `decimal.Decimal`.
    """

    def __init__(self, consumer, answer):
        lease = answer["lease"]
        self.events = answer["events"]
        self.events_missed = answer["events_missed"]
        self.partition, self.position = lease["partition"], lease["position"]
        self._consumer, self._lease = consumer, lease["id"]
        self._is_settled = self._has_progress = False

    def ack(self, through=None):
        """Acknowledges the batch, or its events up to `through`. Call it after your transaction is committed.

        Retries until the gateway answers. Returns False if the lease had expired: another worker reads the events again.
        """
        body = {"lease": self._lease}
        if through is not None:
            body["position"] = through["position"]
        try:
            self._consumer._answer("POST", "ack", body)
        except ConsumerError as error:
            if error.code != "lease_expired":
                raise
            self._is_settled = True
            return False
        self._has_progress = True
        self._is_settled = through is None
        return True

    def release(self):
        """Releases the unacknowledged events. If the gateway cannot be reached, the lease expires."""
        if not self._is_settled:
            self._is_settled = True
            try:
                self._consumer._gateway.ask("POST", self._consumer._path + "release", {"lease": self._lease})
            except (ConsumerError, _Passing):
                pass


class Consumer:
    """A worker of a named consumer (`countersign consumer create APP NAME`): iterate over it to get batches.

    Iterating waits for events. It retries without end when the gateway cannot be reached or answers 408, 429 or 5xx; other
    errors are raised as `ConsumerError`. The next iteration and the end of the `with` block release a batch that was not
    acknowledged. `stop()` ends the iteration, from any thread or signal handler. Use an object in one thread only. As
    many workers as the consumer has partitions can work at the same time.

    `limit` is the maximum number of events in a batch (1 to 1000). `lease_seconds` is the time for the work on a batch
    (5 to 600). `parse_float` reads numbers with a fraction in bodies, as in `json.loads`: `decimal.Decimal` keeps their
    digits.
    """

    def __init__(self, endpoint, app, token, name, *, limit=100, lease_seconds=60, wait=WAIT, parse_float=None):
        if not NAME.match(name):
            raise ConsumerError("invalid_configuration", "name must be the consumer's: 1 to 64 of A-Z a-z 0-9 . _ -")
        self._gateway = _Gateway(endpoint, app, token, parse_float)
        self._path = f"consumers/{name}/"
        self._poll = {"limit": limit, "wait": wait, "lease_seconds": lease_seconds}
        self._stopping = threading.Event()
        self._batch = None
        self._unworked = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Releases the batch if it is not acknowledged, and closes the connection."""
        self._give_back()
        self._gateway.close()

    def stop(self):
        """Ends the iteration before the next batch. A running poll is completed first."""
        self._stopping.set()

    def __iter__(self):
        while True:
            self._give_back()
            # Waits, because the gateway would return an unacknowledged batch again immediately.
            if self._unworked:
                self._stopping.wait(_pause(self._unworked))
            answer = self._next()
            if answer is None:
                return
            self._batch = Batch(self, answer)
            yield self._batch

    def _give_back(self):
        batch, self._batch = self._batch, None
        if batch is not None:
            self._unworked = 0 if batch._has_progress or batch._is_settled else self._unworked + 1
            batch.release()

    def _next(self):
        while not self._stopping.is_set():
            began = time.monotonic()
            answer = self._answer("POST", "poll", self._poll, SLACK + self._poll["wait"], self._stopping)
            if answer is None:
                return None
            _check(answer, "events", "lease", "events_missed", "has_more")
            if answer["lease"] is not None:
                return answer
            if not answer["has_more"]:
                self._stopping.wait(max(0, LEAST_WAIT - (time.monotonic() - began)))
        return None

    def _answer(self, method, path, body, timeout=SLACK, stopping=None):
        return _persistently(lambda: self._gateway.ask(method, self._path + path, body, timeout=timeout), stopping)


def read_events(endpoint, app, token, after=None, *, limit=100, wait=WAIT, parse_float=None, **filters):
    """Yields each `Page` of events, without end and without a named consumer. Store the position of the last page.

    Begins after the position `after`, or with the oldest stored event. `filters` are `verdict`, `type`, `name` and
    `user`. With `wait=0` the iteration ends after the last event.
    """
    unknown = set(filters) - {"verdict", "type", "name", "user"}
    if unknown:
        raise TypeError(f"unknown filter: {', '.join(sorted(unknown))}")
    gateway = _Gateway(endpoint, app, token, parse_float)
    try:
        while True:
            query = {"limit": limit, "wait": wait, **({} if after is None else {"after": after}), **filters}
            path = "events?" + urllib.parse.urlencode(query, quote_via=urllib.parse.quote)
            began = time.monotonic()
            answer = _persistently(lambda: gateway.ask("GET", path, timeout=SLACK + wait))
            _check(answer, "events", "next", "events_missed", "has_more")
            after = answer["next"]
            if answer["events"] or answer["events_missed"]:
                yield Page(answer)
            elif not answer["has_more"]:
                if wait == 0:
                    return
                time.sleep(max(0, LEAST_WAIT - (time.monotonic() - began)))
    finally:
        gateway.close()


def verify_webhook(secrets, headers, body, now=None, tolerance=300):
    """Verifies a delivery and returns it as an object. `secrets` is a secret (`whsec_…`) or a list of them.

    `headers` is a mapping of names to values, and `body` the received bytes. Raises `WebhookError`. The header field
    `webhook-id` is the id of the delivery, and is the same in a retry.
    """
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    fields = {name.lower(): value for name, value in headers.items()}
    id, time_text, signatures = (fields.get("webhook-" + name, "") for name in ("id", "timestamp", "signature"))
    # The id must not contain a dot, which separates id, time and body in the signed text.
    if not re.fullmatch(r"[!-\-/-~]{1,256}", id) or not re.fullmatch(r"[0-9]{1,15}", time_text) or not signatures:
        raise WebhookError("signature_missing", "a delivery has webhook-id, webhook-timestamp and webhook-signature")
    if abs((time.time() if now is None else now) - int(time_text)) > tolerance:
        raise WebhookError("timestamp_out_of_tolerance", f"webhook-timestamp differs by more than {tolerance} seconds from this machine's clock")
    signed = f"{id}.{time_text}.".encode() + body
    codes = [b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()) for key in keys]
    given = signatures[:4096].encode("utf-8", "replace").split(b" ")[:8]
    if not any([hmac.compare_digest(code, signature) for code in codes for signature in given]):
        raise WebhookError("signature_invalid", "no signature matches; check the secrets, and pass the body's bytes as received")
    return json.loads(body)


def _key(secret):
    try:
        key = base64.b64decode(secret[6:], validate=True) if secret.startswith("whsec_") else b""
    except binascii.Error:
        key = b""
    if not 24 <= len(key) <= 64:
        raise WebhookError("invalid_configuration", "a secret must be whsec_ followed by the base64 of 24 to 64 bytes")
    return key


class _Passing(Exception):
    """A failure that a retry may solve, after at least `retry_after` seconds."""

    def __init__(self, retry_after=0):
        super().__init__()
        self.retry_after = retry_after


def _pause(failures, retry_after=0):
    bound = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures - 1, 16))
    return max(bound * random.random(), min(retry_after, LONGEST_RETRY_AFTER))


def _persistently(ask, stopping=None):
    """Calls `ask` until it succeeds, and returns its result; None once `stopping` is set."""
    failures = 0
    while True:
        try:
            return ask()
        except _Passing as passing:
            failures += 1
            seconds = _pause(failures, passing.retry_after)
        if stopping is None:
            time.sleep(seconds)
        elif stopping.wait(seconds):
            return None


def _check(answer, *names):
    if not isinstance(answer, dict) or any(name not in answer for name in names):
        raise ConsumerError("unexpected_answer", "the response is not a gateway's; check the address")


class _Gateway:
    """One connection to the gateway, for reading one app's events. Belongs to one thread."""

    def __init__(self, endpoint, app, token, parse_float):
        parts = urllib.parse.urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ConsumerError("invalid_configuration", "endpoint must be an http or https URL without a query")
        if not NAME.match(app):
            raise ConsumerError("invalid_configuration", "app must be the app's id: 1 to 64 of A-Z a-z 0-9 . _ -")
        if not re.fullmatch(r"[!-~]{1,512}", token):
            raise ConsumerError("invalid_configuration", "token must be an API token with the scope reader, without spaces")
        self._parts, self._prefix = parts, f"{parts.path.rstrip('/')}/v1/apps/{app}/"
        self._headers = {
            "Authorization": "Bearer " + token, "Accept": "application/json", "Accept-Encoding": "gzip",
            "User-Agent": "countersign-consumer-python"}
        self._parse_float = parse_float
        self._connection = None

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, method, path, body=None, timeout=SLACK):
        """Sends a request once. Raises `_Passing` or `ConsumerError`."""
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            self._connection = kind(self._parts.hostname, self._parts.port)
        # A reused connection has the timeout of the last request.
        self._connection.timeout = timeout
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout)
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        is_whole = False
        try:
            self._connection.request(method, self._prefix + path, None if body is None else json.dumps(body), headers)
            response = self._connection.getresponse()
            content = response.read(LONGEST_ANSWER + 1)
            is_whole = len(content) <= LONGEST_ANSWER
        except (OSError, http.client.HTTPException):
            raise _Passing() from None
        finally:
            # Otherwise the rest of this response would be read as the next response.
            if not is_whole:
                self.close()
        return self._read(response, content)

    def _read(self, response, content):
        status = response.status
        try:
            if response.headers.get("Content-Encoding") == "gzip":
                unpack = zlib.decompressobj(wbits=31)
                content = unpack.decompress(content, LONGEST_ANSWER + 1)
            if len(content) > LONGEST_ANSWER:
                raise ValueError
            answer = json.loads(content, parse_float=self._parse_float)
        except (ValueError, zlib.error, RecursionError):
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer
        if status in (408, 429) or status >= 500:
            raise _Passing(_retry_after(response.headers))
        if not isinstance(answer, dict) or not isinstance(answer.get("code"), str):
            raise ConsumerError(
                "unexpected_answer", "the response is not a gateway's; check the URL and proxies", status)
        reason = answer.get("reason")
        raise ConsumerError(answer["code"], str(reason)[:300], status)


def _retry_after(headers):
    text = headers.get("Retry-After", "")
    if re.fullmatch(r"[0-9]{1,9}", text):
        return int(text)
    try:
        date = email.utils.parsedate_to_datetime(headers.get("Date", ""))
        return max(0, (email.utils.parsedate_to_datetime(text) - date).total_seconds())
    except (TypeError, ValueError, IndexError):
        return 0
