"""A real gateway and a site that may call it."""
import json
import time

from tools.common import until as wait_until
from tools.gateway import Shop
from tools.network import Proxy
from .pages import Site


class Stand:
    """A gateway that requires tokens, a proxy to it (`wire`), and a site that may call it."""

    def __init__(self, program):
        self.gateway = Shop(program)
        self.gateway.run("key", "add", "shop", self.gateway.path("good", "public.pem"))
        self.gateway.run("enforcement", "set", "shop", "required", "--yes")
        self.wire = Proxy(self.gateway.port)
        self.site = Site(self.wire.url, self.gateway.token)
        self.gateway.run("app", "origins", "shop", self.site.url)
        # A running gateway sees the change within a second.
        origin = {"Origin": self.site.url, "Access-Control-Request-Method": "POST"}
        wait_until("a gateway that allows the site", lambda: self.gateway.ask("OPTIONS", "/v1/batch", headers=origin)[0] < 400, 10)

    def stored(self, prefix=""):
        """The message ids of stored events whose name begins with `prefix`, in the order of arrival."""
        return [event["messageId"] for event in self.events(prefix)]

    def events(self, prefix):
        lines = self.gateway.run("event", "export", "shop").splitlines()
        return [event for event in map(json.loads, lines) if (event.get("event") or "").startswith(prefix)]

    def arrived(self, receipts, prefix):
        """Checks that each event reported as stored is in the database once. Returns the number of events there."""
        stored = self.stored(prefix)
        lost = {receipt["messageId"] for receipt in receipts if receipt["stored"] != "dropped"} - set(stored)
        assert not lost, f"{len(lost)} of {len(receipts)} events are lost"
        assert len(stored) == len(set(stored)), "an event is stored twice"
        return len(stored)


def until(what, seconds=30, page=None):
    """Waits for a condition outside the browser. Receives the browser's messages while it waits."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return
        page.wait_for_timeout(50) if page else time.sleep(0.05)
    raise AssertionError(f"not true within {seconds} s")
