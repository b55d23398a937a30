"""Tests a new gateway: the first steps and the first event, the menu, the documentation, 200 apps, and an outage."""
import re
import subprocess
import sys
import threading
import time

from playwright.sync_api import expect

from tools.gateway import Shop
from . import journey
from .page import Visitor, say
from .screens import accessible

MANY = 200


def check(browser, program):
    gateway = Shop(program)
    try:
        visitor = Visitor(browser, gateway.url)
        journey.first_sign_in(visitor, gateway.link())
        only_app(visitor)
        menu(visitor, gateway)
        first_event(visitor, gateway)
        documentation(visitor)
        unsaved(visitor)
        texts(visitor, browser, gateway)
        many_apps(visitor, browser, gateway)
        outage(visitor, gateway)
        visitor.leave()
    finally:
        gateway.remove()


def only_app(visitor):
    """The overview shows the first steps of the only app. Dismissed first steps stay hidden after a reload."""
    page = visitor.page
    heading = page.get_by_role("heading", name="First steps for shop")
    card = page.locator(".card").filter(has=heading)
    expect(card).to_contain_text("0 of 4 done")
    expect(card.locator("pre", has_text="jwt.encode")).to_be_visible()
    accessible(visitor, "the first steps")
    visitor.button("Dismiss").click()
    expect(heading).to_have_count(0)
    page.reload()
    visitor.settled()
    expect(heading).to_have_count(0)
    say("the overview shows the first steps of the only app; dismissed, they stay hidden")


def menu(visitor, gateway):
    """The account button is visible in small windows. The menu hides unused features below More."""
    page = visitor.page
    navigation = page.get_by_role("navigation", name="Main")
    account = navigation.get_by_role("button", name="Account")
    page.set_viewport_size({"width": 1280, "height": 720})
    expect(account).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 390, "height": 600})
    visitor.button("Menu").click()
    expect(account).to_be_in_viewport(ratio=1)
    account.click()
    expect(page.get_by_role("menuitem", name="Sign out")).to_be_in_viewport()
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1280, "height": 800})
    visitor.open("apps/shop/failures")
    for name in ("Bloomreach", "Token service", "Customers", "Gateways"):
        expect(navigation.get_by_role("link", name=name)).to_be_hidden()
    navigation.get_by_text("More").first.click()
    accessible(visitor, "the menu with More")
    navigation.get_by_role("link", name="Bloomreach").click()
    expect(page.get_by_role("heading", name="Bloomreach", level=1)).to_be_visible()
    # More stays open while it contains the current screen.
    expect(navigation.get_by_role("link", name="Customers")).to_be_visible()
    gateway.run("client", "create", "shop")
    assert gateway.ask("POST", "/v1/batch", {"batch": [{"type": "identify", "messageId": "1", "anonymousId": "a", "traits": {"plan": "pro"}}]},
                       {"X-Write-Key": gateway.write_key})[0] == 200
    visitor.open("apps/shop/events")
    for name in ("Token service", "Customers"):
        expect(navigation.get_by_role("link", name=name)).to_be_visible()
    expect(navigation.get_by_role("link", name="Bloomreach")).to_be_hidden()
    visitor.open("apps/shop/project")
    page.get_by_label("Project token").fill("shop-token")
    assert visitor.press(visitor.button("Save the project")) == 200
    visitor.open("apps/shop/events")
    expect(navigation.get_by_role("link", name="Bloomreach")).to_be_visible()
    say("small windows show the account button; features leave More once they are used")


def first_event(visitor, gateway):
    """Each snippet of a new app has its write key. The screen shows the first event and a failure without a reload."""
    page = visitor.page
    visitor.open("")
    visitor.button("New app").click()
    visitor.dialog.get_by_label("Name").fill("My Café, Shop")
    expect(visitor.dialog.get_by_label("Id", exact=True)).to_have_value("my-cafe-shop")
    assert visitor.press(visitor.dialog.get_by_role("button", name="Create app")) == 201
    expect(page).to_have_url(re.compile("#/apps/my-cafe-shop/start$"))
    expect(page.get_by_text("Waiting for the first event…")).to_be_visible()
    accessible(visitor, "waiting for the first event")
    code = page.locator("pre").first
    key = re.search(r"wk_[\w-]+", code.inner_text()).group(0)
    for name, part in (("Swift", "CountersignClient("), ("Browser", "/sdk/countersign.js"), ("curl", "curl http"), ("Python", "urllib")):
        visitor.button(name, exact=True).click()
        expect(code).to_contain_text(part)
        expect(code).to_contain_text(key)
        expect(code).to_contain_text(gateway.url)
    rejected = gateway.ask("POST", "/v1/batch", {"batch": [{"event": "Without a type", "messageId": "1"}]}, {"X-Write-Key": key})
    assert rejected[0] == 400, rejected
    expect(page.get_by_text("A request arrived, but no event was stored.")).to_be_visible()
    accessible(visitor, "a first event that was not stored")
    answer = subprocess.run([sys.executable, "-c", code.inner_text()], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    status = page.get_by_role("status").filter(has_text="first event")
    expect(status).to_contain_text("The first event arrived at")
    accessible(visitor, "the first event")
    expect(page.get_by_text("1 of 4 done")).to_be_visible()
    gateway.run("enforcement", "set", "my-cafe-shop", "required", "--yes")
    expect(page.locator(".state-link")).to_have_text("Required")
    visitor.button("curl", exact=True).click()
    command = code.inner_text().replace('"anonymousId":"device-1"', '"userId":"user-1"')
    subprocess.run(command, shell=True, capture_output=True, timeout=60, check=True)
    expect(page.get_by_role("alert")).to_contain_text("A request was rejected: 26 MISSING_TOKEN")
    accessible(visitor, "a failed first event")
    page.get_by_role("link", name="The request, check by check").click()
    expect(page.get_by_role("heading", name="26 MISSING_TOKEN")).to_be_visible()
    page.get_by_role("link", name="More about this code").click()
    expect(page.get_by_role("heading", name="26 MISSING_TOKEN")).to_be_in_viewport()
    page.go_back()
    # The menu hides this screen once the app has an event.
    expect(page.get_by_role("navigation").get_by_role("link", name="Get started")).to_be_hidden()
    visitor.open("apps/my-cafe-shop/start")
    # An anonymous event is not a verified request.
    expect(page.get_by_text("2 of 4 done")).to_be_visible()
    say("a new app's four snippets have its write key; those of Python and curl run, and the screen shows their results")


def documentation(visitor):
    """A screen links its page of the documentation. Each page of the menu opens and has no Markdown left in it."""
    page = visitor.page
    visitor.open("apps/shop/enforcement")
    page.get_by_role("link", name="Documentation: Roll out enforcement").click()
    expect(page.get_by_role("heading", name="Roll out enforcement")).to_be_visible()
    pages = page.get_by_role("navigation", name="Documentation").get_by_role("link")
    known = pages.evaluate_all("all => all.map(one => one.getAttribute('href').slice(2))")
    assert len(known) > 10, known
    for route in known:
        visitor.open(route)
        article = page.locator("article.doc")
        expect(article.get_by_role("heading").first).to_be_visible()
        expect(article.get_by_text("Page not found")).to_have_count(0)
        shown = article.inner_text()
        assert "](" not in shown and "```" not in shown and "**" not in shown, f"{route} shows Markdown that was not converted"
        accessible(visitor, route)
    page.keyboard.press("Control+k")
    page.keyboard.type("help roll")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/docs/guides/roll-out-enforcement$"))
    say(f"a screen links its page of the documentation; the gateway shows {len(known)} pages")


def unsaved(visitor):
    """A link, Back and Refresh ask for confirmation before unsaved input is lost."""
    page = visitor.page
    visitor.open("apps/shop/events")
    # Waits for the new screen, because the screen of events also has a field "Name".
    with visitor.renewed():
        page.evaluate("location.hash = '#/apps/shop/settings'")
    name = page.get_by_label("Name", exact=True)
    name.fill("unsaved")
    events = page.get_by_role("navigation").get_by_role("link", name="Events")
    for leave in (events.click, page.go_back, visitor.button("Refresh").click):
        leave()
        expect(visitor.dialog).to_contain_text("Leave without saving?")
        visitor.dialog.get_by_role("button", name="Cancel").click()
        expect(page).to_have_url(re.compile("#/apps/shop/settings$"))
        expect(name).to_have_value("unsaved")
    events.click()
    accessible(visitor, "unsaved input")
    visitor.dialog.get_by_role("button", name="Leave").click()
    expect(page.get_by_role("heading", name="Events", level=1)).to_be_visible()
    expect(page).to_have_url(re.compile("#/apps/shop/events$"))
    visitor.open("apps/shop/settings")
    name.fill("shop")
    assert visitor.press(visitor.button("Save", exact=True).first) == 200
    visitor.told("Saved.")
    events.click()
    expect(page.get_by_role("heading", name="Events", level=1)).to_be_visible()
    say("a link, Back and Refresh ask for confirmation before unsaved input is lost; after saving they do not")


def texts(visitor, browser, gateway):
    """Bidirectional controls are shown as escapes, times in the browser's format. A phone breaks no word of a heading."""
    page = visitor.page
    assert gateway.send(None, name="a\u202eb") == 200
    visitor.open("apps/shop/events")
    row = page.get_by_role("table", name="Events, newest first").locator("tbody tr").first
    expect(row).to_contain_text(r"a\u202eb")
    row.get_by_role("button").click()
    expect(visitor.dialog.locator("pre.json")).to_contain_text(r'"event": "a\u202eb"')
    page.keyboard.press("Escape")
    gateway.run("user", "limit", "shop", "ada", "--rate", "1")
    visitor.open("apps/shop/enforcement")
    expect(page.get_by_role("table", name="Blocked, limited and revoked")).to_contain_text("1 request per minute")
    american = Visitor(browser, gateway.url, visitor.context.storage_state(), 320, locale="en-US")
    for route in ("apps/shop/enforcement", "apps/shop/failures", "apps/shop/project"):
        american.open(route)
        lines = american.page.evaluate("""() => {
            const heading = document.querySelector("h1"), range = document.createRange();
            range.selectNodeContents(heading);
            return new Set([...range.getClientRects()].map(one => one.top)).size - heading.textContent.split(" ").length;
        }""")
        assert lines <= 0, f"{route} breaks a word of its heading"
        wide = american.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 320, (route, wide)
    expect(american.page.locator("#age")).to_have_text(re.compile(r"^as of \d\d:\d\d:\d\d [ap]m$"))
    american.leave()
    say("bidirectional controls are shown as escapes, times in the browser's format, headings without broken words")


def many_apps(visitor, browser, gateway):
    """With 200 apps the overview has pages and a search, and shows the app with failures first."""
    page = visitor.page
    token = visitor.context.request.get(f"{gateway.url}/admin/api/session").json()["csrf"]
    for number in range(MANY):
        made = visitor.context.request.post(f"{gateway.url}/admin/api/apps", data={"id": f"app-{number:03}", "name": f"App {number}"},
                                            headers={"X-CSRF-Token": token, "Origin": gateway.url})
        assert made.status == 201, made.text()
    # Gives `shop` more requests than the app with failures.
    for _ in range(5):
        assert gateway.send(None) == 200
    visitor.open("")
    table = page.get_by_role("table", name="Apps")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(25)
    expect(rows.first).to_contain_text("My Café, Shop")
    # The rate counts only verified requests, because an anonymous request cannot fail.
    expect(rows.first.get_by_role("cell").nth(2)).to_have_text(re.compile(r"100\s%"))
    expect(page.get_by_text(f"1 to 25 of {MANY + 2} apps")).to_be_visible()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        tall = page.evaluate("document.documentElement.scrollHeight")
        assert tall < 6_000, f"the overview is {tall} pixels tall at a width of {width}"
    page.set_viewport_size({"width": 1280, "height": 800})
    accessible(visitor, "many apps")
    visitor.button("Next").click()
    expect(page.get_by_text(f"26 to 50 of {MANY + 2} apps")).to_be_visible()
    expect(page).to_have_url(re.compile(r"#/\?from=25$"))
    page.get_by_label("Find an app").fill("app 19")
    expect(rows).to_have_count(12)
    page.get_by_label("Order").select_option("name")
    expect(rows.first).to_contain_text("App 119")
    page.reload()
    visitor.settled()
    expect(rows).to_have_count(12)
    page.get_by_label("Find an app").fill("nothing")
    expect(page.get_by_text("No app matches")).to_be_visible()
    say(f"{MANY + 2} apps are shown in pages, the app with failures first, and found by search")


def outage(visitor, gateway):
    """A screen opened during an outage retries with growing pauses, and loads once the gateway runs again."""
    page = visitor.page
    visitor.open("apps/shop/failures?range=1h")
    # A screen that does not poll.
    settings = visitor.context.new_page()
    settings.goto(f"{gateway.url}/admin/#/apps/shop/settings")
    keys = settings.get_by_role("table", name="Write keys")
    expect(keys).to_be_visible()
    gateway.stop()
    gateway.run("write-key", "create", "shop", "--description", "made in the outage")
    asked = []
    page.on("request", lambda request: asked.append(time.monotonic()))
    page.get_by_role("navigation").get_by_role("link", name="Claims policy").click()
    # Heading and menu are shown although the screen cannot load.
    expect(page.get_by_role("heading", name="Claims policy", level=1)).to_be_visible()
    expect(page.locator(".state-link")).to_have_text("Unknown")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The gateway cannot be reached.")
    expect(alert).to_contain_text(re.compile(r"Trying again in \d+ s\."))
    expect(visitor.button("Try now")).to_be_visible()
    accessible(visitor, "an outage")
    began = time.monotonic()
    page.wait_for_timeout(20_000)
    early, late = (len([at for at in asked if start < at - began <= start + 10]) for start in (0, 10))
    assert 0 < late < early < 16, f"{early} requests in 10 s of an outage, then {late}"
    page.get_by_role("navigation").get_by_role("link", name="Enforcement").click()
    expect(page.get_by_role("heading", name="Enforcement", level=1)).to_be_visible()
    # The gateway starts 4 s later, so that the screen's first requests fail. The screen must recover without a click.
    threading.Timer(4, gateway.start).start()
    expect(page.get_by_text("there is nothing to predict from")).to_be_visible()
    expect(alert).to_have_count(0)
    expect(keys).to_contain_text("made in the outage")
    settings.close()
    page.route("**/sdk/countersign.json", lambda route: route.abort(), times=1)
    visitor.open("apps/shop/settings")
    expect(page.get_by_role("table", name="Write keys")).to_be_visible()
    say(f"a screen recovers from an outage without a click; it made {early} requests in 10 s, then {late} in 10 s")
