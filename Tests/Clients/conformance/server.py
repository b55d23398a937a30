"""A local HTTP server for native, location and Bloomreach clients. Also issues access tokens."""
import asyncio
import email.utils
import gzip
import json
import time
import urllib.parse

from matching import difference

# More requests than any scenario expects between two checks. Stops a client that retries without waiting.
MOST_REQUESTS = 2000
# Seconds until a response, so that the server can detect that a client sends two requests at the same time.
MOMENT = 0.002


class Request:
    """The parts of a request that scenarios check, for all kinds of client. `events` has pairs of id and name."""

    def __init__(self, target, headers, body, elapsed):
        path = urllib.parse.urlsplit(target).path
        text = body.decode()
        self.is_for_tokens = path == "/refresh"
        self.refresh = urllib.parse.unquote(text.rsplit("=", 1)[-1]) if self.is_for_tokens else None
        members = {} if self.is_for_tokens or not text else json.loads(text)
        self.says_counts = "batch" in members
        user = None
        if self.says_counts:
            self.events = [(one["messageId"], one.get("event") or one["type"]) for one in members["batch"]]
            user = members["batch"][0].get("userId")
        elif "location" in members:
            records = members["location"]
            self.events = [(one["uuid"],) * 2 for one in (records if isinstance(records, list) else [records])]
        elif path.startswith("/track/"):
            self.events = [(members["message_id"], members.get("event_type", "customer"))]
        else:
            self.events = []
        scheme, _, credential = headers.get("authorization", "").partition(" ")
        self.seen = {
            "to": "tokens" if self.is_for_tokens else "events" if self.events else "query", "at": elapsed, "path": path,
            "user": user, "customer": members.get("customer_ids", {}).get("registered"), "refresh": self.refresh,
            "token": credential if scheme == "Bearer" else None, "key": credential if scheme == "Token" else None,
            "events": [name for _, name in self.events], "count": len(self.events),
        }


class Connection(asyncio.Protocol):
    """A connection with one request and its response."""

    def __init__(self, server):
        self._server = server
        self._received = b""
        self._request = None

    def connection_made(self, transport):
        self._transport = transport
        self._server.activity += 1

    def data_received(self, data):
        self._server.activity += 1
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or self._request:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        if len(body) < int(headers.get("content-length", 0)):
            return
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self._request = Request(first.split()[1], headers, body, self._server.elapsed())
        self._server.received(self._request, self)

    def connection_lost(self, error):
        self._server.activity += 1
        if self._request:
            self._server.gone(self._request)

    def answer(self, status, headers, body):
        fields = {**headers, "Content-Length": len(body), "Connection": "close"}
        head = f"HTTP/1.1 {status} so\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._transport.write(head.encode() + b"\r\n" + body)
        self._transport.close()

    def lose(self):
        self._transport.abort()


class Server:
    """Responds by a scenario's rules. Without a matching rule, stores events and exchanges tokens like a gateway."""

    def __init__(self, scenario, resolve):
        self._resolve = resolve
        self._lifetime = scenario.get("token_lifetime")
        self.rules = scenario.get("server", [])
        self.requests, self.delivered, self.duplicates, self.overlaps = [], [], 0, 0
        # The number of connection events and the number of pending responses, to detect idleness.
        self.activity, self.busy = 0, 0
        self._stored, self._under_way, self._exchanges = set(), set(), 0
        self.overrun = asyncio.get_running_loop().create_future()

    async def start(self):
        self._began = time.monotonic()
        self._listener = await asyncio.get_running_loop().create_server(lambda: Connection(self), "127.0.0.1", 0)
        self.url = "http://127.0.0.1:%d" % self._listener.sockets[0].getsockname()[1]

    def stop(self):
        self._listener.close()

    def elapsed(self):
        return time.monotonic() - self._began

    @property
    def rules(self):
        return self._rules

    @rules.setter
    def rules(self, rules):
        self._rules = [dict(rule) for rule in rules]

    def received(self, request, connection):
        if request.events:
            self._under_way.add(request)
            self.overlaps += len(self._under_way) > 1
        self.requests.append(request.seen)
        if len(self.requests) > MOST_REQUESTS:
            if not self.overrun.done():
                self.overrun.set_exception(AssertionError("requests without end"))
            return
        rule = next((one for one in self.rules if one.get("times") != 0 and self._matches(one.get("when", {}), request)), {})
        if "times" in rule:
            rule["times"] -= 1
        if rule.get("stores"):
            self._good(request, {})
        if rule.get("hangs"):
            return
        reply = self._reply(rule, request)
        self.busy += 1
        asyncio.get_running_loop().call_later(MOMENT, self._send, reply, request, connection)

    def _send(self, reply, request, connection):
        self.busy -= 1
        self._under_way.discard(request)
        if reply:
            connection.answer(*reply)
        else:
            connection.lose()

    def gone(self, request):
        """The client or the server closed the connection."""
        self._under_way.discard(request)

    def _matches(self, when, request):
        seen = request.seen
        if seen["to"] != when.get("to", "events"):
            return False
        for name, value in when.items():
            if name == "events":
                matches = any(one in seen["events"] for one in value)
            elif name == "more_than":
                matches = seen["count"] > value
            elif name == "before":
                matches = seen["at"] < value
            else:
                matches = difference(value, seen[name], self._resolve) is None
            if not matches:
                return False
        return True

    def _reply(self, rule, request):
        """Returns status, header fields and body of the response, or None to reset the connection."""
        if "error" in rule:
            return None
        headers = dict(rule.get("headers", {}))
        for field, name in (("Date", "date"), ("Retry-After", "retry_date")):
            if name in rule:
                headers[field] = email.utils.formatdate(time.time() + rule[name], usegmt=True)
        if "refuse" in rule:
            return 401, headers, json.dumps({"success": False, "auth_error": rule["refuse"]}).encode()
        if "status" in rule:
            return rule["status"], headers, rule.get("text", json.dumps(rule.get("body", {}))).encode()
        status, body = self._good(request, rule)
        return status, headers, json.dumps(body).encode()

    def _good(self, request, rule):
        """Accepts all events except those that the rule's `reject` names. Returns status and body."""
        if request.is_for_tokens:
            return self._exchange(request.refresh)
        rejected, duplicates, reject = [], 0, rule.get("reject", [])
        for index, (identifier, name) in enumerate(request.events):
            if reject == "all" or name in reject:
                rejected.append({"index": index, "code": "invalid_event", "reason": "so"})
            elif identifier in self._stored:
                duplicates += 1
            else:
                self._stored.add(identifier)
                self.delivered.append(name)
        self.duplicates += duplicates
        body = {"success": True}
        if request.says_counts:
            accepted = len(request.events) - len(rejected) - duplicates
            body |= {"accepted": accepted, "duplicates": duplicates, "rejected": rejected}
        return 200, {**body, **rule.get("body", {})}

    def _exchange(self, token):
        """Rotates refresh tokens: a new one for the active token, the active one for its parent, otherwise an error."""
        serial = int(token[1:]) if token[1:].isdigit() else -1
        if serial < 0 or serial not in (self._exchanges - 1, self._exchanges):
            return 400, {"error": "invalid_grant"}
        self._exchanges = max(self._exchanges, serial + 1)
        body = {"access_token": f"A{self._exchanges}", "refresh_token": f"R{self._exchanges}"}
        return 200, body if self._lifetime is None else {**body, "expires_in": self._lifetime}
