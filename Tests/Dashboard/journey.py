"""The first tasks of a new owner: sign in, add a key, watch live requests, read the chart, require tokens, undo that."""
import re

from playwright.sync_api import expect

from .page import MARKUP, PASSWORD, say
from .screens import accessible


def first_sign_in(visitor, link):
    page = visitor.page
    page.goto(link)
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again", exact=True).fill(PASSWORD)
    visitor.button("Create the owner and sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_role("heading", name="First steps for shop")).to_be_visible()
    say("the link that serve prints creates the owner and signs in; the overview lists the first steps")


def add_key(visitor, gateway):
    visitor.open("apps/shop/keys")
    visitor.button("Add public key").first.click()
    field = visitor.dialog.get_by_label("Public key", exact=True)
    field.fill(gateway.read("good", "private.pem"))
    expect(visitor.dialog.get_by_text("This is a private key. It was not saved")).to_be_visible()
    expect(field).to_have_value("")
    field.fill(gateway.read("good", "public.pem"))
    visitor.dialog.get_by_label("Description (optional)").fill(MARKUP)
    expect(visitor.dialog.locator(".candidate")).to_contain_text("RS256")
    visitor.dialog.get_by_text("Test with a token").click()
    visitor.dialog.get_by_label("A token that your backend signed").fill(gateway.token("user-1"))
    expect(visitor.dialog.get_by_text("verifies your token")).to_be_visible()
    visitor.dialog.get_by_role("button", name="Add public key").click()
    expect(visitor.page.locator(".key-description").first).to_have_text(MARKUP)
    say("a private key is rejected; a public key is added after its preview and a test with a token")


def measure(visitor):
    visitor.open("apps/shop/enforcement")
    visitor.button("Switch to Optional").click()
    expect(visitor.page.locator(".state-card.optional.active")).to_be_visible()


def watch_live(visitor, gateway):
    visitor.open("apps/shop/live")
    expect(visitor.page.locator(".live-status")).to_contain_text("Live")
    assert gateway.send("user-1", gateway.token("user-1"), MARKUP) < 300
    gateway.send(MARKUP)
    gateway.send(None)
    gateway.send(MARKUP, gateway.token(MARKUP, "good", "--now", "1700000000"))
    gateway.send("user-2", gateway.token("user-1"))
    gateway.send("user-1", gateway.token("user-1", "other"))
    table = visitor.page.locator(".live-table tbody")
    for text in ("Accepted", "Anonymous", "26 MISSING_TOKEN", "22 EXPIRED", "21 SUBJECT_MISMATCH", "27 NO_MATCHING_PUBLIC_KEYS"):
        expect(table.get_by_text(text, exact=True).first).to_be_visible()
    say("accepted, anonymous and failed requests appear in the live tail")


def each_code(visitor, gateway):
    """Every error code appears in the live tail, the chart, its legend and its table, and has a sample with a remedy."""
    every = gateway.trigger("all")
    codes_of(visitor, gateway, "trigger", "all", every)
    say(f"each code appears in the live tail, the chart, its legend and its table, and has a sample: {', '.join(str(code) for code, _ in every)}")


def codes_of(visitor, gateway, app, verdict, codes):
    page = visitor.page
    visitor.open(f"apps/{app}/live")
    expect(page.locator(".live-status")).to_contain_text("Live")
    gateway.trigger(verdict)
    for code, reason in codes:
        expect(page.locator(".live-table tbody").get_by_text(f"{code} {reason}", exact=True).first).to_be_visible()
    visitor.open(f"apps/{app}/failures?range=1h")
    for code, reason in codes:
        expect(page.locator(f".bar[data-code='{code}']").first).to_be_visible()
        expect(page.locator(f".legend-key[data-code='{code}']")).to_be_visible()
    visitor.button("Table", exact=True).click()
    for code, reason in codes:
        expect(page.get_by_role("columnheader", name=f"{code} {reason}")).to_be_visible()
    visitor.button("Chart", exact=True).click()
    for code, reason in codes:
        page.get_by_role("table", name="Failures by code").get_by_role("button", name=f"{code} {reason}", exact=True).click()
        samples = page.locator("#samples")
        expect(samples.locator("tbody tr").first).to_contain_text(f"{code} {reason}")
        expect(samples.locator(".fix")).to_contain_text(re.compile(r"\w{3}"))
        expect(samples.locator(".fix")).not_to_contain_text("`")
        samples.locator("tbody a").first.click()
        expect(page.get_by_role("heading", name=f"{code} {reason}")).to_be_visible()
        expect(page.get_by_text("What to do")).to_be_visible()
        expect(page.locator(".checks .bad")).not_to_have_count(0)
        page.go_back()
        expect(page.locator(".bar").first).to_be_visible()


def numbers(page):
    """Reads the table of failures. Returns the cells by time and column, and the totals by column."""
    table = page.get_by_role("table", name="Failures per bucket")
    expect(table).to_be_visible()
    heads = table.locator("thead th").all_inner_texts()
    rows = table.locator("tbody tr").evaluate_all("rows => rows.map(row => [...row.children].map(cell => cell.innerText))")
    total = table.locator("tfoot tr > *").all_inner_texts()
    return {row[0]: dict(zip(heads, row)) for row in rows}, dict(zip(heads, total))


def read_chart(visitor):
    """Uses the chart by mouse: tooltip, requests of a bar, filters, markers, and ranges. Compares tooltip and table."""
    page = visitor.page
    visitor.open("apps/shop/failures?range=1h")
    bar = page.locator(".bar[data-code='22']").last
    bar.hover()
    tip = page.locator(".chart-tip")
    expect(tip).to_contain_text("22 EXPIRED")
    when = tip.locator(".tip-title").inner_text()
    hovered = {row[0]: row[1] for row in tip.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.innerText))")}
    bar.click()
    expect(page.locator("#samples tbody")).to_contain_text("22 EXPIRED")
    origins = page.locator(".card").filter(has=page.get_by_role("heading", name="Where failures with 22 EXPIRED come from"))
    expect(origins.get_by_role("table")).to_be_visible()
    page.mouse.move(0, 0)
    # A click on a bar filters the chart by its code.
    expect(page.locator(".bar:not([data-code='22'])")).to_have_count(0)
    page.get_by_role("button", name="Remove the filter 22 EXPIRED").first.click()
    expect(page.locator(".bar:not([data-code='22'])").first).to_be_visible()
    visitor.button("Table", exact=True).click()
    rows, total = numbers(page)
    assert {code: rows[when][code] for code in hovered} == hovered, (hovered, rows[when])
    shown = sum(int(value.replace(",", "")) for column, value in total.items() if re.match(r"\d\d ", column))
    stat = page.locator(".stat").filter(has_text="Failures in total").locator(".stat-value").inner_text()
    assert int(stat.replace(",", "")) == shown == sum(int(row["Failures"].replace(",", "")) for row in rows.values()), (stat, total)
    visitor.button("Show 22 EXPIRED in the chart").click()
    expect(page.get_by_role("columnheader", name="22 EXPIRED")).to_have_count(0)
    visitor.button("Chart", exact=True).click()
    expect(page.locator(".bar").first).to_be_visible()
    expect(page.locator(".bar[data-code='22']")).to_have_count(0)
    visitor.button("Show 22 EXPIRED in the chart").click()
    expect(page.locator(".bar[data-code='22']").first).to_be_visible()
    expect(page.locator(".marker.key").first).to_be_attached()
    expect(page.locator(".marker.enforcement").first).to_be_attached()
    say("by mouse: the chart's tooltip agrees with the table, a bar shows its requests, the legend filters, markers are shown")

    page.get_by_text("Compare with the period before").click()
    expect(page).to_have_url(re.compile("compare=1"))
    visitor.button("Custom", exact=True).click()
    visitor.page.get_by_label("From (").fill("2026-01-01T00:00")
    visitor.page.get_by_label("To (").fill("2025-01-01T00:00")
    visitor.button("Apply").click()
    expect(page.get_by_text("The end must come after the start.")).to_be_visible()
    visitor.page.get_by_label("From (").fill("2020-01-01T00:00")
    visitor.page.get_by_label("To (").fill("2020-01-02T00:00")
    visitor.button("Apply").click()
    expect(page.get_by_text("No requests in this range")).to_be_visible()
    visitor.button("UTC", exact=True).click()
    expect(visitor.page.get_by_label("From (UTC)")).to_have_value("2020-01-01T00:00")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert open(download.value.path()).readline().strip()
    say("a custom range is validated, shown in local time and UTC, and exported as CSV")


def look_at_sample(visitor):
    page = visitor.page
    visitor.open("apps/shop/failures?range=1h&code=22")
    page.locator("#samples tbody a").first.click()
    expect(page.get_by_role("heading", name="Verdict, check by check")).to_be_visible()
    expect(page.locator("#sample-user")).to_have_text(MARKUP)
    visitor.button("Check again with today's keys").click()
    expect(page.locator(".recheck .notice")).to_be_visible()
    expect(page.locator("pre.json").last).to_contain_text("window.hacked")
    request = page.locator("main").get_by_text(re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")).first.inner_text()
    there = page.url
    visitor.open("apps/shop/failures")
    page.keyboard.press("Control+k")
    page.keyboard.type(request)
    visitor.dialog.get_by_role("option").filter(has_text="Failed request").first.click()
    expect(page).to_have_url(there)
    page.get_by_role("link", name="Its events").click()
    expect(page.get_by_label("Request id", exact=True)).to_have_value(request)
    say("a sample shows its request check by check, and the command palette finds it by its request id")


def enforce(visitor, gateway):
    page = visitor.page
    visitor.open("apps/shop/enforcement")
    visitor.button("Switch to Required").click()
    expect(visitor.dialog.locator(".impact")).to_contain_text("would have been rejected")
    expect(visitor.dialog.get_by_label("Begin with")).to_have_value("10")
    visitor.dialog.get_by_label("Begin with").fill("100")
    confirm = visitor.dialog.get_by_role("button", name="Switch to Required")
    expect(confirm).to_be_disabled()
    visitor.dialog.get_by_label("Type shop to confirm").fill("shop")
    confirm.click()
    expect(page.locator(".state-card.required.active")).to_be_visible()
    assert gateway.send("user-1") == 401
    visitor.button("Disable now").click()
    expect(visitor.dialog).to_contain_text("Anyone who has the write key")
    accessible(visitor, "the confirmation of Disabled")
    visitor.dialog.get_by_role("button", name="Switch to Disabled").click()
    expect(page.locator(".state-card.disabled.active")).to_be_visible()
    assert gateway.send("user-1") < 300
    visitor.button("Undo").click()
    expect(page.locator(".state-card.required.active")).to_be_visible()
    visitor.button("Switch to Optional").click()
    expect(visitor.dialog).to_contain_text("forged, expired or missing token are stored")
    visitor.dialog.get_by_role("button", name="Switch to Optional").click()
    expect(page.locator(".state-card.optional.active")).to_be_visible()
    say("Required shows its effect first and then rejects; Disabled accepts again, and Undo restores Required")
