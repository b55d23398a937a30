"""Tests the search for events by verdict, and the dashboard's lists of consumers, streams, files and webhooks."""
import json
import re
import threading
import time

from playwright.sync_api import expect

from tools.receiver import Receiver
from .page import MARKUP, say
from .services import secret


class Deliveries:
    """A webhook's receiver that stores the body of each delivery, and answers with `status`."""

    def __init__(self):
        self.bodies, self.arrived, self.status = [], threading.Condition(), 200
        self.receiver = Receiver(self.take).start()
        self.url = self.receiver.url + "/in"

    def take(self, path, body, headers):
        with self.arrived:
            self.bodies.append(body.decode())
            self.arrived.notify_all()
        return self.status, {}, b"thanks"

    def wait(self, text):
        with self.arrived:
            assert self.arrived.wait_for(lambda: any(text in body for body in self.bodies), 20), f"no delivery has {text}"


# A pattern of the time of a recent failure. The reason follows it.
AGO = r"(just now|\d+ (s|min) ago)"


def fact(visitor, way, name):
    """Returns the value of a fact in the list entry of a consumer, stream, webhook or the files."""
    entry = visitor.page.get_by_role("listitem", name=way, exact=True)
    return entry.locator("dl > div").filter(has=visitor.page.get_by_text(name, exact=True)).locator("dd")


def stored(gateway, noun, name):
    return json.loads(gateway.run(noun, "show", "shop", name, "--json"))


def move(visitor, name):
    """Moves a consumer or stream to the position after the newest event."""
    visitor.button(f"Move {name}").click()
    visitor.dialog.get_by_label("Move to").select_option("end")
    assert visitor.press(visitor.dialog.get_by_role("button", name="Move", exact=True)) == 200
    visitor.told(f"{name} is 0 events behind now.")
    expect(fact(visitor, name, "Behind")).to_have_text("Up to date")


def verdicts(visitor):
    """A search by verdict shows events with that verdict, and no others."""
    page = visitor.page
    visitor.open("apps/shop/events")
    rows = page.get_by_role("table", name="Events, newest first").locator("tbody tr")

    def search(value):
        page.get_by_label("Verdict", exact=True).select_option(value)
        visitor.button("Search").click()

    for value, shown in (("verified", "Verified"), ("warned", "Warned"), ("anonymous", "Anonymous")):
        search(value)
        badge = page.get_by_text(shown, exact=True)
        expect(rows.filter(has_not=badge)).to_have_count(0)
        expect(rows.filter(has=badge).first).to_be_visible()
    search("unverified")
    expect(rows.filter(has=page.get_by_text("Verified", exact=True))).to_have_count(0)
    expect(rows.filter(has=page.get_by_text("Warned", exact=True)).first).to_be_visible()
    search("unknown")
    expect(page.get_by_text("No event matches")).to_be_visible()
    say("events are found by their verdict")


def consumers(visitor, gateway):
    page = visitor.page
    gateway.run("consumer", "create", "shop", "billing")
    visitor.open("apps/shop/events")
    page.reload()
    expect(fact(visitor, "billing", "Behind")).to_contain_text(re.compile(r"[1-9]\d* events"))
    before = stored(gateway, "consumer", "billing")["position"]
    expect(fact(visitor, "billing", "Position")).to_have_text(before)
    # A backend fetches the events, so the gateway does not know whether it works.
    expect(fact(visitor, "billing", "Leased")).to_have_text("0 of 1")
    expect(fact(visitor, "billing", "Last failure")).to_have_count(0)
    expect(page.get_by_role("listitem", name="billing", exact=True)).not_to_contain_text("Active")
    move(visitor, "billing")
    after = stored(gateway, "consumer", "billing")["position"]
    assert after != before
    expect(fact(visitor, "billing", "Position")).to_have_text(after)
    visitor.button("Delete the consumer billing").click()
    visitor.dialog.get_by_label("Type billing to confirm").fill("billing")
    visitor.dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No consumer")).to_be_visible()
    say("the list of consumers shows position and lag; a consumer is moved and deleted")


def streams(visitor, gateway):
    """A stream to a missing server fails, is paused, still shows why it failed, and is moved."""
    page = visitor.page
    visitor.open("apps/shop/events")
    expect(page.get_by_role("list", name="Consumers").or_(page.get_by_text("No consumers yet"))).to_be_visible()
    expect(page.get_by_role("list", name="Streams")).to_have_count(0)
    gateway.run("stream", "create", "shop", "warehouse", "nats://127.0.0.1:1", "EVENTS")
    page.reload()
    stream = page.get_by_role("listitem", name="warehouse")
    expect(fact(visitor, "warehouse", "Behind")).to_contain_text(re.compile(r"[1-9]\d* events"), timeout=15_000)
    expect(stream).to_contain_text("Failing", timeout=20_000)
    visitor.button("Pause warehouse").click()
    visitor.told("It is paused; events wait.")
    expect(stream.get_by_text("Paused", exact=True)).to_be_visible()
    paused = stored(gateway, "stream", "warehouse")
    expect(fact(visitor, "warehouse", "Position")).to_have_text(paused["position"])
    expect(fact(visitor, "warehouse", "Last failure")).to_have_text(re.compile(f"^{AGO}{re.escape(paused['reason'])}$"))
    move(visitor, "warehouse")
    assert stored(gateway, "stream", "warehouse")["position"] != paused["position"]
    gateway.run("stream", "delete", "shop", "warehouse")
    say("the list of streams shows position, lag and the last failure; a stream is paused and moved")


def files(visitor):
    """Tests with an altered response about files, because this gateway writes none."""
    page = visitor.page
    failed = {"enabled": True, "state": "paused", "position": "AcLx", "lag_events": 2, "last_failure_ms": int(time.time() * 1000) - 120_000, "reason": MARKUP}

    def change(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), **failed})

    page.route("**/apps/shop/files", change)
    visitor.open("apps/shop/events")
    page.reload()
    for name, value in (("Position", "AcLx"), ("Behind", re.compile("^2 events")), ("Last success", "never"), ("Last failure", f"2 min ago{MARKUP}")):
        expect(fact(visitor, "Hourly files", name)).to_have_text(value)
    page.unroute("**/apps/shop/files")
    visitor.check()
    say("the hourly files show position, lag and the last failure")


def webhooks(visitor, gateway):
    page = visitor.page
    receiver = Deliveries()
    visitor.open("apps/shop/webhooks")
    visitor.button("Add a webhook").click()
    dialog = visitor.dialog
    dialog.get_by_label("Address").fill(receiver.url)
    dialog.get_by_text("It may be on a private network or on this machine").click()
    dialog.get_by_label("Start with").select_option("start")
    assert visitor.press(dialog.get_by_role("button", name="Add webhook")) == 201
    secret(visitor, r"whsec_\S+")
    hooks = page.get_by_role("list", name="Webhooks")
    expect(hooks).to_contain_text("Active")
    receiver.wait('"type":"events"')
    visitor.button(f"Test {receiver.url}").click()
    receiver.wait('{"type":"test"}')
    visitor.button(f"Deliveries to {receiver.url}").click()
    deliveries = page.get_by_role("table", name="Deliveries")
    expect(deliveries.locator("tbody tr").filter(has_text="events").first).to_contain_text("200")
    visitor.button("Answer").first.click()
    expect(dialog.get_by_text("thanks")).to_be_visible()
    page.keyboard.press("Escape")
    visitor.button("Replay").first.click()
    receiver.wait('"replay":true')
    # The failure stays visible while the webhook is paused, and after a success.
    failure = fact(visitor, receiver.url, "Last failure")
    expect(failure).to_have_text("never")
    receiver.status = 410
    assert gateway.send("user-1") < 300
    expect(hooks.get_by_text("Paused: it answered 410 Gone")).to_be_visible()
    expect(failure).to_have_text(re.compile(f"^{AGO}it answered 410$"))
    paused = stored(gateway, "webhook", fact(visitor, receiver.url, "Id").inner_text())
    expect(fact(visitor, receiver.url, "Position")).to_have_text(paused["position"])
    receiver.status = 200
    visitor.button(f"Resume {receiver.url}").click()
    expect(fact(visitor, receiver.url, "Behind")).to_have_text("Up to date")
    expect(failure).to_contain_text("it answered 410")
    for name, shown in (("Pause", "Paused"), ("Resume", "Active")):
        visitor.button(f"{name} {receiver.url}").click()
        expect(hooks.get_by_text(shown, exact=True)).to_be_visible()
    visitor.button(f"Edit {receiver.url}").click()
    visitor.button("Rotate secret").click()
    assert visitor.press(dialog.get_by_role("button", name="Rotate", exact=True)) == 200
    secret(visitor, r"whsec_\S+")
    visitor.button(f"Delete the webhook {receiver.url}").click()
    dialog.get_by_label("Type delete to confirm").fill("delete")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No webhook")).to_be_visible()
    receiver.receiver.shutdown()
    say("a webhook is added, tested, paused, resumed and deleted, and shows its last failure; its deliveries are listed and replayed, its secret is rotated")
