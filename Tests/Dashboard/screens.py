"""Checks every screen for accessibility and width, and takes the screenshots of the documentation."""
import os

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from .page import Visitor, say

OF_GATEWAY = ["", "audit", "members", "gateways", "system", "docs"]
OF_APP = ["start", "failures", "live", "keys", "enforcement", "policy", "events", "webhooks", "customers", "sessions", "project", "settings"]


def all_of(app):
    return [*OF_GATEWAY, *(f"apps/{app}/{name}" for name in OF_APP)]


def accessible(visitor, place):
    found = Axe().run(visitor.page).response["violations"]
    assert not found, [(place, item["id"], item["nodes"][0]["html"], item["nodes"][0].get("failureSummary")) for item in found]


def dialogs(visitor):
    """Checks the accessibility of the largest dialogs."""
    for route, opener in (("apps/shop/keys", "Add public key"), ("apps/shop/enforcement", "Switch to Required"), ("", "Keyboard shortcuts")):
        visitor.open(route)
        visitor.button(opener).first.click()
        expect(visitor.dialog).to_be_visible()
        expect(visitor.dialog.locator(".skeleton")).to_have_count(0)
        accessible(visitor, opener)


def check(browser, url, storage):
    """Checks every screen in both themes and on a phone: axe, notices of errors, faults, and horizontal overflow."""
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 360)):
        visitor = Visitor(browser, url, storage, width, scheme)
        page = visitor.page
        for route in all_of("shop"):
            visitor.open(route)
            trouble = page.locator(".notice.bad").all_inner_texts()
            assert not trouble, (route, trouble)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{route} is {wide} pixels wide on a screen of {width}"
            cut = page.locator(".table-scroll:not(.tall), .segmented").evaluate_all(
                "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.getAttribute('aria-label'))")
            assert not cut, f"{route} cuts off {cut} on a screen of {width} pixels"
            if route.startswith("apps/"):
                expect(page.locator(".state-link")).to_be_visible()
            accessible(visitor, (scheme, width, route))
            visitor.check()
        if width == 1280:
            visitor.open("apps/shop/failures?range=1h&code=22")
            with visitor.renewed():
                page.locator("#samples tbody a").first.click()
            accessible(visitor, (scheme, "sample"))
            dialogs(visitor)
        for route in all_of("guard") if width == 360 else []:
            visitor.open(route)
            visitor.check()
        visitor.leave()
    say("no screen has an axe violation, executed markup, a console error, a policy violation, a foreign request, or horizontal overflow")


PICTURES = [
    ("failures", "apps/shop/failures?range=24h", "light", 1280),
    ("failures-dark", "apps/shop/failures?range=24h", "dark", 1280),
    ("enforcement", "apps/shop/enforcement", "light", 1280),
    ("keys", "apps/shop/keys", "light", 1280),
    ("overview-dark", "", "dark", 1280),
    ("failures-phone", "apps/shop/failures?range=24h", "light", 390),
]


def pictures(browser, url, storage, folder):
    os.makedirs(folder, exist_ok=True)
    for name, route, scheme, width in PICTURES:
        visitor = Visitor(browser, url, storage, width, scheme)
        visitor.page.set_viewport_size({"width": width, "height": 900})
        visitor.open(route)
        file = os.path.join(folder, f"dashboard-{name}.png")
        visitor.page.screenshot(path=file)
        assert os.path.getsize(file) < 200_000, f"{file} is too large"
        visitor.leave()
    say(f"pictures are in {folder}")
