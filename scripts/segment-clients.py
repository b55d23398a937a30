"""Delivers events through the unchanged Python clients of Segment and RudderStack and looks for them in the database.

Usage: segment-clients.py COUNTERSIGN_BINARY
"""

import sqlite3
import sys
import urllib.request

import rudderstack.analytics.client as rudder
import segment.analytics.client as segment

from gateway import serving

EVENTS = 250


def main(binary):
    with serving(binary, lambda run: run("app", "create", "shop")) as (address, data, write_key):
        errors = []
        for name, module, extra in [
            ("segment", segment, {"host": address, "gzip": True}),
            ("segment-plain", segment, {"host": address, "gzip": False}),
            ("rudder", rudder, {"host": address, "gzip": True}),
        ]:
            client = module.Client(write_key, on_error=lambda error, items: errors.append(error), **extra)
            for number in range(EVENTS):
                client.track(f"{name}-user-{number % 7}", "Order Placed", {"client": name, "number": number})
            # Half an emoji, as in a truncated title.
            client.track(f"{name}-user-0", "Seen", {"title": "a\ud83d"})
            client.identify(f"{name}-user-0", {"plan": "pro"})
            client.page(f"{name}-user-0", "docs", "home")
            client.screen(f"{name}-user-0", "docs", "home")
            client.group(f"{name}-user-0", "group-1")
            client.alias(f"{name}-anonymous", f"{name}-user-0")
            client.flush()
            client.join()
            rows = sqlite3.connect(f"file:{data}/events.sqlite?mode=ro", uri=True).execute(
                "SELECT type, count(*), count(DISTINCT message_id) FROM event WHERE user_id LIKE ? GROUP BY type",
                (name + "-user-%",)).fetchall()
            expected = [("alias", 1, 1), ("group", 1, 1), ("identify", 1, 1), ("page", 1, 1), ("screen", 1, 1),
                        ("track", EVENTS + 1, EVENTS + 1)]
            if errors or sorted(rows) != expected:
                raise SystemExit(f"{name}: {errors or rows}")
            print(f"{name}: {sum(row[1] for row in rows)} events, each once")
        assert urllib.request.urlopen(address + "/livez").status == 200


main(sys.argv[1])
