"""Runs the steps of one scenario, and waits after each until the client is idle."""
import asyncio
import base64
import contextlib
import json
import math
import time

from app import App, CallFailure
from matching import difference
from server import Server

# Seconds between two checks whether the client is idle, and the time limit of a scenario in seconds.
BREATH = 0.004
PATIENCE = 120

# The steps of each mode that are a call without arguments, and their methods.
CALLS = {
    "signed_user": {
        "start_session": "startSession", "background": "enterBackground", "foreground": "enterForeground", "log_out": "logOut",
        "wipe": "wipe", "opt_out": "optOut", "opt_in": "optIn",
    },
    "access_token": {"forget_tokens": "forgetTokens", "wipe": "removeAll"},
    "bloomreach": {},
}
AUTHORIZATION = {"access_token": "accessToken", "refresh_token": "refreshToken", "expires": "expires"}


class Stage:
    def __init__(self, scenario, folder):
        self._scenario = scenario
        self._mode = scenario["mode"]
        self._configuration = scenario.get("configuration", {})
        self._folder = folder
        self._server = Server(scenario, self._token)
        self._answers = list(scenario.get("provider", []))
        self._callbacks, self._calls = [], []
        self._asked = self._numbered = 0
        self._flush = None
        self._start = math.ceil(time.time())

    async def run(self):
        """Raises AssertionError if the client differs from the expectations, and TimeoutError if it hangs."""
        await self._server.start()
        try:
            await asyncio.wait_for(self._steps(), PATIENCE)
            assert not self._server.overlaps, "two requests at the same time"
        finally:
            await self._app.kill()
            self._server.stop()

    async def _steps(self):
        await self._open()
        for number, step in enumerate(self._scenario["steps"], 1):
            try:
                await self._while_bounded(self._perform(step))
            except (AssertionError, CallFailure) as error:
                raise AssertionError(f"step {number}: {error!r}") from error

    async def _while_bounded(self, work):
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait([task, self._server.overrun], return_when=asyncio.FIRST_COMPLETED)
            if self._server.overrun.done():
                self._server.overrun.result()
            await task
        finally:
            task.cancel()
        await self._rest()

    def _token(self, text):
        """`jwt ada 600` stands for a token of `ada` that expires 600 seconds after the start."""
        if not isinstance(text, str) or not text.startswith("jwt "):
            return text
        _, subject, seconds = text.split()
        parts = ({"alg": "RS256"}, {"sub": subject, "exp": self._start + int(seconds)})
        encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        return ".".join([*encoded, "sig"])

    # The client

    async def _open(self):
        given = self._configuration
        self._app = App(self._heard)
        settings = getattr(self, f"_{self._mode}")(given, given.get("flush") == "manual")
        await self._app.open(self._mode, {**settings, "dataDirectory": self._folder}, "provider" in self._scenario)
        await self._rest()

    # A back-off that does not end during a scenario. __main__.py skips scenarios that wait for its end.
    _NEVER = {"baseDelay": 1e6, "maximumDelay": 1e6}

    def _signed_user(self, given, is_manual):
        return {
            "endpoint": self._server.url, "writeKey": "wk", "flushPolicy": "manual" if is_manual else "automatic",
            "batchEvents": given.get("batch_events"), "limits": {"maximumEvents": given.get("maximum_events")},
            "networkRetry": self._NEVER, "authenticationRetry": self._NEVER,
        }

    def _access_token(self, given, is_manual):
        return {
            "http": {"url": self._server.url, "autoSync": not is_manual, "batchSync": "batch_events" in given,
                     "maxBatchSize": given.get("batch_events")},
            "authorization": {
                "refreshUrl": None if "refresh_url" in given else f"{self._server.url}/refresh",
                "refreshPayload": {"refresh_token": "{refreshToken}"}, "refreshStatuses": given.get("refresh_statuses", []),
                **{name: given.get(key) for key, name in AUTHORIZATION.items()},
            },
            "persistence": {"locationsOrderDirection": given.get("order"), "maxRecordsToPersist": given.get("maximum_events")},
            "keepsTokens": given.get("keeps_tokens"), "networkRetry": self._NEVER,
        }

    def _bloomreach(self, given, is_manual):
        return {
            **self._project(given), "flushMode": "MANUAL" if is_manual else "IMMEDIATE",
            "advancedAuthEnabled": "provider" in self._scenario,
        }

    def _project(self, given):
        token, key = given.get("project", "shop"), given.get("key", "key")
        return {"baseUrl": self._server.url, "projectToken": token, "authorizationToken": key}

    def _heard(self, app, message):
        if app is not self._app:
            return
        if "ask" in message:
            self._provide(app, message["ask"], message["request"])
            return
        event = message["event"]
        kind = event["event"]
        if kind == "authentication_failure":
            self._callbacks.append({
                "code": event["code"], "reason": event["reason"], "user": event["userId"], "token": event["token"],
                "is_optional": event["optional"], "origin": event["origin"], "clock_skew": event["clockSkew"],
                "occurrences": event["occurrences"],
            })
        elif kind == "authorization":
            self._callbacks.append({"is_success": event["success"], "status": event["status"]})
        elif kind == "delivery_failure":
            error = event["error"]
            self._callbacks.append({"code": error["code"], "project": error.get("projectToken")})

    def _provide(self, app, serial, request):
        self._calls.append({"user": request.get("userId"), "reason": request.get("reason"), "code": request.get("code")})
        self._asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        token = answer.get("returns")
        app.answer(serial, token and self._token(token.replace("#", str(self._asked))))

    async def _rest(self):
        """Returns when every thread of the client sleeps and no message is in transit.

        The client is another process and does not report idleness, so this compares two samples of its threads.
        """
        while True:
            before = (self._server.activity, self._app.messages)
            first = self._app.context_switches()
            await asyncio.sleep(BREATH)
            await self._app.call("ping")
            await self._turns()
            # The response to the ping is a message too, and does not count.
            after = (self._server.activity, self._app.messages - 1)
            if first is not None and first == self._app.context_switches() and before == after and not self._server.busy:
                return

    @staticmethod
    async def _turns():
        """Yields to the event loop, which accepts a connection in one turn and reads from it in a later one."""
        for _ in range(5):
            await asyncio.sleep(0)

    # Steps

    async def _perform(self, step):
        verb = next(iter(step))
        value, app = step[verb], self._app
        if verb in CALLS[self._mode]:
            await app.call(CALLS[self._mode][verb])
        elif verb == "record":
            await self._record(value, step)
        elif verb == "flush":
            self._check_flush(await self._sent(self._begin_flush()), value)
        elif verb == "begin_flush":
            self._flush = self._begin_flush()
        elif verb == "end_flush":
            self._check_flush(await self._sent(self._flush), value)
        elif verb == "wait":
            await asyncio.sleep(value)
        elif verb in ("restart", "kill"):
            await (app.close() if verb == "restart" else app.kill())
            await self._turns()
            self._configuration = {**self._configuration, **(value if isinstance(value, dict) else {})}
            await self._open()
        elif verb == "requeue":
            self._check(value, await app.call("requeueQuarantinedEvents"), verb)
        elif verb == "delete_quarantined":
            self._check(value, await app.call("deleteQuarantinedEvents"), verb)
        elif verb == "server":
            self._server.rules = value
        elif verb == "provider":
            self._answers = list(value)
        elif verb == "change_user":
            # changeUser returns an error for an empty id.
            with contextlib.nullcontext() if value else contextlib.suppress(CallFailure):
                await app.call("changeUser", userId=value, token=self._token(step.get("token")))
        elif verb == "set_token":
            await app.call("setToken", token=self._token(value))
        elif verb == "hand_over":
            await app.call("configure", authorization={AUTHORIZATION[key]: given for key, given in value.items()})
        elif verb == "identify":
            await app.call("identifyCustomer", customerIds={"registered": value})
        elif verb == "anonymize":
            project = self._project(value) if isinstance(value, dict) else {}
            await app.call("anonymize", **project)
        elif verb == "ask":
            self._check(step.get("result", "ok"), await self._ask(value), "result")
        elif verb == "expect":
            await self._expect(value)
        else:
            raise AssertionError(f"unknown step {verb}")

    def _check(self, expected, observed, path):
        if expected is not True:
            found = difference(expected, observed, self._token, path)
            assert found is None, found

    async def _record(self, what, step):
        if isinstance(what, int):
            names = [str(self._numbered + number + 1) for number in range(what)]
            self._numbered += what
        else:
            names = what
        for name in names:
            if self._mode == "access_token":
                call = self._app.begin("insert", uuid=name, coords={"latitude": 1, "longitude": 2})
            elif self._mode == "bloomreach":
                call = self._app.begin("trackEvent", eventType=name)
            else:
                properties = {"filler": "x" * step["bytes"]} if step.get("bytes") else None
                call = self._app.begin("track", event=name, properties=properties)
            if step.get("refused"):
                with contextlib.suppress(CallFailure):
                    await call
                    raise AssertionError("the event was recorded")
                return
            await call

    def _begin_flush(self):
        return self._app.begin("sync" if self._mode == "access_token" else "flush")

    async def _sent(self, call):
        """Returns the result of a flush. `sync` has no ending: it succeeds if all locations were sent."""
        if self._mode != "access_token":
            result = await call
            batches = [{**batch, "user": batch["userId"], "count": batch["events"]} for batch in result["batches"]]
            return {**result, "batches": batches}
        try:
            await call
            return {"ending": "drained", "queued": await self._app.call("count")}
        except CallFailure:
            return {"ending": None}

    def _check_flush(self, observed, expected):
        if expected is not True and observed["ending"] is None:
            assert expected["ending"] != "drained", "sync failed"
        else:
            self._check(expected, observed, "flush")

    async def _ask(self, what):
        try:
            await self._app.call({"app_inbox": "fetchAppInbox", "consents": "fetchConsents"}[what])
            return "ok"
        except CallFailure as failure:
            return str(failure)

    # Expectations

    async def _expect(self, expected):
        server, app = self._server, self._app
        observed = {"delivered": server.delivered, "delivered_count": len(server.delivered), "duplicates": server.duplicates}
        if expected.keys() & {"requests", "request_count", "request_sizes"}:
            requests, server.requests = server.requests, []
            observed |= {"requests": requests, "request_count": len(requests),
                         "request_sizes": [request["count"] for request in requests]}
        if "callbacks" in expected:
            observed["callbacks"], self._callbacks = self._callbacks, []
        if "provider_calls" in expected:
            observed["provider_calls"], self._calls = self._calls, []
        if self._mode == "signed_user":
            observed["user"] = await app.call("userId")
        elif self._mode == "access_token":
            observed["authorization"] = (await app.call("authorizationState"))["kind"]
        else:
            observed["user"] = (await app.call("customerIds")).get("registered")
        snapshot = await app.call("snapshot")
        quarantined = await app.call("quarantinedEvents")
        self._check(expected, {
            **observed, **{name: snapshot[name] for name in ("queued", "recorded", "sent", "wiped")},
            "evicted": snapshot["evictedByCount"], "quarantined": [self._name(one["body"]) for one in quarantined],
            "quarantine_codes": [one["code"] for one in quarantined],
            "parked": [{"user": one["userId"], "reason": one["reason"], "failures": one["failures"], "is_paused": one["isPaused"],
                        "next_attempt_in": one["nextAttemptIn"]} for one in snapshot["parked"]],
            "is_stopped": snapshot["configurationProblem"] is not None, "is_failing": snapshot["lastError"] is not None,
            "next_attempt_in": snapshot["nextAttemptIn"], "authentication_failures": snapshot["authenticationFailures"],
            "clock_offset": snapshot["clockOffset"],
        }, "expect")

    @staticmethod
    def _name(body):
        """The name of an event in the scenario."""
        event = body.get("body", body)
        return next((event[key] for key in ("event", "uuid", "event_type", "type") if key in event), "")
