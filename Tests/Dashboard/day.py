"""Makes a day of traffic for the screenshots in three minutes: the gateway's clock runs 480 times as fast (libfaketime).

From 8 to 12 h a new version of the app sends tokens of other users. From 16 h the backend signs with a new key, which the
gateway gets at 17.6 h. At 21 h tokens become required.
"""
import datetime
import http.client
import json
import math
import random
import time

from tools.network import faketime
from .page import say

SECONDS = 180
SPEED = 480
CALM = {"good": 84, "anonymous": 12, "expired": 1.6, "missing": 1.1, "unreadable": 0.4, "early": 0.3, "long": 0.4}


class Day:
    def __init__(self, gateway):
        self.gateway = gateway
        self.random = random.Random(7)
        self.began = time.time()
        # The faster clock starts this many seconds early, so that the day ends at the real time.
        self.lead = SECONDS * (SPEED - 1)

    @property
    def now(self):
        return self.began - self.lead + (time.time() - self.began) * SPEED

    def operate(self, *arguments, at):
        """Runs a command of the command line with its clock set to `at`."""
        return self.gateway.run(*arguments, through=faketime(f"-{time.time() - at:.0f}s"))

    def mint(self):
        start = int(self.began - self.lead)
        token = self.gateway.token
        self.users = [f"user-{number}" for number in range(1, 49)]
        self.tokens = {user: {
            "good": token(user, "good", "--now", str(start - 60), "--lifetime", "172800"),
            "new": token(user, "next", "--now", str(start - 60), "--lifetime", "172800"),
        } for user in self.users}
        for user in self.users[:12]:
            self.tokens[user] |= {
                "expired": token(user, "good", "--now", str(start - 700_000)),
                "early": token(user, "good", "--now", str(start + 700_000)),
                "long": token(user, "good", "--now", str(start - 60), "--lifetime", "2592000"),
            }

    def request(self, kind, hour):
        """Returns the user, the token and the app version of one request."""
        user = self.random.choice(self.users)
        version = self.random.choices(["5.2.0", "5.1.3", "4.9.0"], [min(8, hour / 2), 6, 2])[0]
        # From 16 h to 20 h the backend replaces its key gradually.
        good = "new" if hour >= 16 and self.random.random() < min(1, (hour - 16) / 4) else "good"
        if kind == "anonymous":
            return None, None, version
        if kind == "missing":
            return user, None, "4.9.0"
        if kind == "unreadable":
            return user, "Bearer%20eyJhbGciOi", "4.9.0"
        if kind == "another":
            return user, self.tokens[self.random.choice(self.users)]["good"], "5.2.0"
        if kind in ("expired", "early", "long"):
            user = self.random.choice(self.users[:12])
            return user, self.tokens[user][kind], "4.9.0"
        return user, self.tokens[user][good], version

    def mix(self, hour):
        kinds = dict(CALM)
        if 8 <= hour < 12:
            kinds["another"] = 14 * math.sin((hour - 8) / 4 * math.pi)
        return kinds

    def run(self):
        self.gateway.stop()
        before = time.time() - self.lead - 1800
        self.operate("key", "add", "shop", self.gateway.path("good", "public.pem"), "--description", "token service, 2025", at=before)
        self.operate("policy", "set", "shop", "--max-lifetime", "259200", at=before)
        self.operate("enforcement", "set", "shop", "optional", at=before)
        self.mint()
        self.began = time.time()
        self.start()
        changes = self.changes()
        upcoming = next(changes)
        sent = 0
        while (hour := (time.time() - self.began) * SPEED / 3600) < 24:
            if hour >= upcoming:
                # The gateway's timers do not run under libfaketime, so a restart makes it load the change.
                self.stop()
                upcoming = next(changes)
                self.start()
            day = 0.35 + 0.65 * max(0, math.sin((self.hour_of_day() - 5) / 19 * math.pi))
            kinds = self.mix(hour)
            for _ in range(self.random.randint(1, max(1, round(14 * day)))):
                self.send(*self.request(self.random.choices(list(kinds), kinds.values())[0], hour))
                sent += 1
            time.sleep(0.05)
        self.stop()
        self.gateway.start()
        say(f"{sent} requests, spread over a simulated day of {SECONDS} seconds")

    def start(self):
        self.gateway.start(faketime(f"{self.now - time.time():+.0f}s x{SPEED}"))
        self.connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port)

    def stop(self):
        self.connection.close()
        self.gateway.stop()

    def changes(self):
        """Makes the operator's changes. Yields the hour of the next change."""
        yield 17.6
        key = self.operate("key", "add", "shop", self.gateway.path("next", "public.pem"), "--description", "token service, 2026", at=self.now)
        yield 19.5
        self.operate("key", "primary", "shop", key.splitlines()[0], at=self.now)
        yield 21
        self.operate("enforcement", "set", "shop", "required", "--yes", at=self.now)
        yield 25

    def hour_of_day(self):
        return datetime.datetime.fromtimestamp(self.now, datetime.timezone.utc).hour

    def send(self, user, token, version):
        event = {"type": "track", "messageId": f"{time.time_ns()}", "event": self.random.choice(["Order Completed", "Cart Viewed", "Signed In"]),
                 "context": {"app": {"version": version}}}
        event["anonymousId" if user is None else "userId"] = user or f"device-{self.random.randint(1, 99)}"
        headers = {"X-Write-Key": self.gateway.write_key, "Content-Type": "application/json",
                   "User-Agent": self.random.choice(["countersign-swift/1.4.0", "countersign-swift/1.4.0", "analytics-python/2.3.4"])}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self.connection.request("POST", "/v1/batch", json.dumps({"batch": [event]}), headers)
        self.connection.getresponse().read()
