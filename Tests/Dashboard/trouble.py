"""Tests the dashboard for viewers, by keyboard, after the end of a session, on lost connections, and with a stopped gateway."""
import re

from playwright.sync_api import expect

from tools.network import Proxy
from .page import PASSWORD, Visitor, say

WRITING = re.compile(r"^(Add.*|Manage|Switch to.*|Disable now|Save .*|Save|Make.*|Create.*|Back up.*|New.*|Delete.*|Revoke.*|Remove.*|Retry.*|Schedule|Apply|Edit.*|Cancel the.*"
                     r"|Open a session|End all.*|Follow.*|Unfollow|Change|Verify \S+)$")


def viewer(browser, owner, screens):
    """A viewer has no button that changes anything, and no screen sends a request that the gateway answers with 403."""
    owner.open("members")
    owner.button("Add a member").click()
    owner.dialog.get_by_label("Name").fill("vera")
    owner.dialog.get_by_label("Initial password").fill(PASSWORD)
    owner.dialog.get_by_role("button", name="Add", exact=True).click()
    expect(owner.page.get_by_role("rowheader", name="vera")).to_be_visible()
    role = owner.page.get_by_label("Role of vera")
    role.select_option("owner")
    owner.dialog.get_by_role("button", name="Cancel").click()
    expect(role).to_have_value("viewer")
    for name in ("operator", "viewer"):
        role.select_option(name)
        owner.dialog.get_by_role("button", name=f"Make {name}").click()
        owner.told(f"vera is {name} now.")
    visitor = Visitor(browser, owner.url)
    visitor.page.goto(f"{owner.url}/admin/")
    visitor.sign_in("vera", "a wrong long sentence")
    expect(visitor.page.get_by_text("The name or the password is wrong.")).to_be_visible()
    visitor.sign_in("vera")
    expect(visitor.page.get_by_role("heading", name="Overview")).to_be_visible()
    rejected = []
    visitor.page.on("response", lambda answer: rejected.append(answer.url) if answer.status == 403 else None)
    for screen in screens:
        visitor.open(screen)
        names = [name for name in visitor.page.locator("button:visible:enabled").evaluate_all(
            "all => all.map(one => one.getAttribute('aria-label') || one.innerText.trim())") if WRITING.match(name)]
        assert not names, f"a viewer has the buttons {names} on {screen}"
        assert not rejected, f"the gateway rejects requests of {screen} for a viewer: {rejected}"
    visitor.leave()
    say("a viewer has no button for a change, and no screen sends a forbidden request")


def keyboard(browser, url):
    """Signs in and opens a failed request without a mouse."""
    visitor = Visitor(browser, url)
    page = visitor.page
    page.goto(f"{url}/admin/")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type("ada")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.keyboard.press("?")
    expect(visitor.dialog).to_contain_text("Keyboard shortcuts")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_label("App", exact=True)).to_be_focused()
    page.keyboard.type("s")
    expect(page).to_have_url(re.compile("apps/shop/failures"))
    expect(page.get_by_role("heading", name="Failures", level=1)).to_be_focused()
    for keys, heading in (("gk", "Public keys"), ("gv", "Events"), ("gf", "Failures")):
        page.keyboard.type(keys)
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        if heading == "Events":
            page.keyboard.press("/")
            expect(page.get_by_label("User")).to_be_focused()
            page.keyboard.press("Shift+Tab")
            page.evaluate("document.activeElement.blur()")
    chart = page.locator("#failure-chart")
    expect(page.locator(".bar").first).to_be_visible()
    for _ in range(60):
        if chart.evaluate("element => element === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(chart).to_be_focused()
    for key in ("Home", "End", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator(".chart-tip")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#samples-title")).to_be_focused()
    page.keyboard.press("Escape")
    expect(chart).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.locator("#samples-title")).to_be_focused()
    sample = page.locator("#samples tbody a").first
    nothing = page.get_by_text("No failed requests")
    expect(sample.or_(nothing)).to_be_visible()
    if nothing.is_visible():
        # A new bucket has begun since the requests were sent, so they are in the bar before the last.
        page.keyboard.press("Escape")
        expect(chart).to_be_focused()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        expect(page.locator("#samples-title")).to_be_focused()
    expect(sample).to_be_visible()
    for _ in range(8):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#samples tbody a') !== null"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Verdict, check by check")).to_be_visible()
    visitor.leave()
    say("the keyboard alone signs in and opens a failed request")


def live_cut(browser, gateway, storage):
    """After a lost connection the live tail shows the requests that it missed, without a gap. Returns the window."""
    wire = Proxy(gateway.port)
    visitor = Visitor(browser, wire.url, storage)
    visitor.open("apps/shop/live")
    status = visitor.page.locator(".live-status")
    expect(status).to_contain_text("Live")
    rows = visitor.page.locator(".live-table tbody")
    gateway.send(None, version="before-the-cut")
    expect(rows.get_by_text("before-the-cut")).to_have_count(1)
    wire.cut()
    expect(status).to_contain_text("lost")
    for number in range(5):
        gateway.send(None, version=f"while-cut-{number}")
    wire.mend()
    for number in range(5):
        expect(rows.get_by_text(f"while-cut-{number}")).to_have_count(1)
    expect(rows.get_by_text("before-the-cut")).to_have_count(1)
    expect(rows.locator(".gap")).to_have_count(0)
    say("after a lost connection the live tail continues without a gap")
    visitor.check()
    return visitor


def stopped(visitor, live, gateway):
    """While the gateway is stopped, the page shows its data and their age. After a restart it recovers, and the live tail has a gap."""
    page = visitor.page
    visitor.open("apps/shop/failures?range=15m")
    expect(page.locator(".bar").first).to_be_visible()
    gateway.stop()
    trouble = page.locator(".notice.amber").filter(has_text="cannot be reached")
    expect(trouble).to_contain_text("What you see is from")
    expect(page.locator(".bar").first).to_be_visible()
    gateway.start()
    expect(trouble).to_have_count(0)
    expect(live.page.locator(".live-table .gap")).to_be_visible()
    gateway.send(None, version="after-the-start")
    expect(live.page.locator(".live-table").get_by_text("after-the-start")).to_have_count(1)
    live.leave()
    # The list of requests follows the chart, and Refresh loads the preview again.
    gateway.send("user-9", "a.b.c", version="after-the-outage")
    expect(page.locator("#samples")).to_contain_text("after-the-outage")
    visitor.open("apps/shop/enforcement")
    lead = page.locator(".impact-lead")
    before = lead.inner_text()
    gateway.send("user-9", "a.b.c")
    visitor.button("Refresh").click()
    expect(lead).not_to_have_text(before)
    say("with a stopped gateway the page shows the age of its data; after the restart it recovers, and the live tail shows a gap")


def expired(browser, url):
    """A session that ends shows the sign-in form, which leads back to the same screen and range."""
    visitor = Visitor(browser, url)
    page = visitor.page
    page.goto(f"{url}/admin/#/apps/shop/failures?range=7d&view=table")
    visitor.sign_in("ada")
    expect(page.get_by_role("heading", name="Failures", level=1)).to_be_visible()
    visitor.settled()
    token = visitor.context.request.get(f"{url}/admin/api/session").json()["csrf"]
    ended = visitor.context.request.delete(f"{url}/admin/api/session", headers={"X-CSRF-Token": token, "Origin": url})
    assert ended.ok, ended.text()
    # Without a click, because the gateway ends the event stream of the header.
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    visitor.sign_in("ada")
    expect(page.get_by_role("table", name="Failures per bucket")).to_be_visible()
    expect(page).to_have_url(re.compile("range=7d"))
    visitor.leave()
    say("an ended session shows the sign-in form, which leads back to the same screen")
