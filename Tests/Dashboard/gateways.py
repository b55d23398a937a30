"""Tests the screen "Gateways" with one gateway on a data directory, and with two gateways on one database."""
import re
import shutil

from playwright.sync_api import expect

from tools.common import Skipped, workshop
from tools.gateway import Shop
from tools.postgresql import PostgreSQL
from . import journey, screens
from .page import Visitor, say


def alone(visitor):
    """On a data directory the screen shows one gateway and no table. The command palette opens the screen."""
    page = visitor.page
    visitor.open("audit")
    visitor.button("Go to").click()
    visitor.dialog.get_by_role("combobox").fill("gatew")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/gateways$"))
    expect(page.get_by_text("One gateway runs, with a data directory of its own")).to_be_visible()
    expect(page.get_by_role("link", name="Documentation: Several gateways")).to_be_visible()
    expect(page.get_by_role("table")).to_have_count(0)
    say("with a data directory, the screen of gateways names one gateway and links the page on several gateways")


def several(browser, program):
    """Two gateways share a PostgreSQL database. The screen shows which one was killed."""
    folder = workshop()
    try:
        server = PostgreSQL(folder)
    except Skipped as reason:
        return say(f"skipped, {reason}: the screen of several gateways")
    first, second = Shop(program, database=server.url()), None
    try:
        visitor = Visitor(browser, first.url)
        journey.first_sign_in(visitor, first.link())
        # Starts after the sign-in, because the second gateway's one-time link would replace the first's.
        second = Shop(program, beside=first)
        visitor.open("gateways")
        table = visitor.page.get_by_role("table", name="Gateways")
        rows = table.locator("tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.get_by_text("Live", exact=True)).to_have_count(2)
        for gateway in (first, second):
            expect(table).to_contain_text(gateway.url)
        expect(visitor.page.get_by_role("table", name="Partitions").locator("tbody tr")).not_to_have_count(0)
        expect(visitor.page.get_by_text(re.compile(r"^version \d+$"))).to_be_visible()
        screens.accessible(visitor, "gateways of a database")
        for width in (360, 1280):
            visitor.page.set_viewport_size({"width": width, "height": 800})
            assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width, f"the screen of gateways is wider than {width} pixels"
        visitor.open("system")
        expect(visitor.page.get_by_text("which PostgreSQL's own tools back up")).to_be_visible()
        expect(visitor.page.get_by_role("alert")).to_have_count(0)
        visitor.open("")
        expect(visitor.page.get_by_text("Events in the database")).to_be_visible()
        expect(visitor.page.get_by_text("free", exact=False).filter(has_text="used,")).to_have_count(0)
        visitor.open("gateways")
        second.kill()
        expect(rows.filter(has_text=second.url).get_by_text("Stopped, or cut off")).to_be_visible(timeout=20_000)
        expect(visitor.page.locator(".notice.amber")).to_contain_text("has not been heard from")
        expect(rows.filter(has_text=first.url).get_by_text("Live", exact=True)).to_be_visible()
        visitor.leave()
        say("the screen shows two gateways on one database, and which one was killed")
    finally:
        if second:
            second.remove()
        first.remove()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
