"""Tests the search for events by verdict, and the dashboard's lists of consumers, streams and webhooks."""
import re
import threading

from playwright.sync_api import expect

from tools.receiver import Receiver
from .page import say
from .services import secret


class Deliveries:
    """A webhook's receiver that accepts each delivery and stores its body."""

    def __init__(self):
        self.bodies, self.arrived = [], threading.Condition()
        self.receiver = Receiver(self.take).start()
        self.url = self.receiver.url + "/in"

    def take(self, path, body, headers):
        with self.arrived:
            self.bodies.append(body.decode())
            self.arrived.notify_all()
        return 200, {}, b"thanks"

    def wait(self, text):
        with self.arrived:
            assert self.arrived.wait_for(lambda: any(text in body for body in self.bodies), 20), f"no delivery has {text}"


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
    table = page.get_by_role("table", name="Consumers")
    expect(table).to_contain_text(re.compile(r"billing[1-9]\d* events"))
    visitor.button("Move billing").click()
    visitor.dialog.get_by_label("Move to").select_option("end")
    assert visitor.press(visitor.dialog.get_by_role("button", name="Move", exact=True)) == 200
    visitor.told("billing is 0 events behind now.")
    expect(table).to_contain_text("Up to date")
    visitor.button("Delete the consumer billing").click()
    visitor.dialog.get_by_label("Type billing to confirm").fill("billing")
    visitor.dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No consumer")).to_be_visible()
    say("the list of consumers shows the lag; a consumer is moved and deleted")


def streams(visitor, gateway):
    """The screen shows that a stream to a missing server fails, and its button pauses the stream."""
    page = visitor.page
    visitor.open("apps/shop/events")
    expect(page.get_by_role("table", name="Consumers").or_(page.get_by_text("No consumers yet"))).to_be_visible()
    expect(page.get_by_role("table", name="Streams")).to_have_count(0)
    gateway.run("stream", "create", "shop", "warehouse", "nats://127.0.0.1:1", "EVENTS")
    page.reload()
    table = page.get_by_role("table", name="Streams")
    expect(table).to_contain_text(re.compile(r"warehouse.*[1-9]\d* events"), timeout=15_000)
    expect(table).to_contain_text("Failing", timeout=20_000)
    visitor.button("Pause warehouse").click()
    visitor.told("It is paused; events wait.")
    expect(table).to_contain_text("Paused")
    gateway.run("stream", "delete", "shop", "warehouse")
    say("the list of streams shows lag and failure; a stream is paused")


def webhooks(visitor):
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
    say("a webhook is added, tested, paused, resumed and deleted; its deliveries are listed and replayed, its secret is rotated")
