"""Tests a new app, its claims policy, the rotation of keys, scheduled changes, and Required for a part of the users."""
import datetime
import json
import re

from playwright.sync_api import expect

from .page import MARKUP, say
from .screens import accessible


def make_guard(visitor):
    """Creates the app `guard` in the page, with markup in each text field. Returns the write key that the page showed."""
    page = visitor.page
    visitor.open("")
    visitor.button("New app").click()
    visitor.dialog.get_by_label("Id").fill("guard")
    visitor.dialog.get_by_label("Name").fill(MARKUP)
    visitor.dialog.get_by_role("button", name="Create app").click()
    expect(page.get_by_role("heading", name=f"First steps for {MARKUP}")).to_be_visible()
    write_key = re.search(r"wk_[\w-]+", page.locator("pre").first.inner_text()).group(0)
    visitor.open("apps/guard/settings")
    expect(page.get_by_role("table", name="Write keys")).to_contain_text(write_key)
    visitor.button("Create a write key").click()
    visitor.dialog.get_by_label("Description").fill(MARKUP)
    visitor.dialog.get_by_role("button", name="Create write key").click()
    visitor.button("Done", exact=True).click()
    expect(page.get_by_role("cell", name=MARKUP).first).to_be_visible()
    visitor.open("apps/guard/policy")
    demanded = page.get_by_label("aud", exact=True)
    expect(demanded).to_be_disabled()
    page.get_by_label("Audience (aud)").fill(MARKUP)
    demanded.check()
    page.get_by_label("Audience (aud)").fill("")
    expect(demanded).to_be_disabled()
    expect(demanded).not_to_be_checked()
    page.get_by_label("Audience (aud)").fill(MARKUP)
    expect(demanded).to_be_checked()
    demanded.uncheck()
    page.get_by_label("Maximum token lifetime", exact=True).fill("")
    visitor.button("Save the policy").click()
    visitor.told("The policy is saved and in force.")
    expect(page.get_by_label("Audience (aud)")).to_have_value(MARKUP)
    say("an app is created in the page; markup in names, descriptions and rules is shown as text")
    return write_key


def schedule(visitor):
    """Schedules Required for 30 % of the users and cancels it. Then schedules Optional for the next minute; `scheduled` checks that."""
    page = visitor.page
    visitor.open("apps/guard/enforcement")
    to = page.get_by_label("Switch to", exact=True)
    share = page.get_by_label("Share of users, %")
    to.select_option("required")
    share.fill("30")
    visitor.button("Schedule", exact=True).click()
    expect(visitor.dialog).to_contain_text("for 30 % of users")
    visitor.dialog.get_by_label("Type guard to confirm").fill("guard")
    visitor.dialog.get_by_role("button", name="Schedule it").click()
    card = page.locator(".card").filter(has=page.get_by_role("heading", name="Scheduled switch"))
    expect(card).to_contain_text("for 30 % of users")
    visitor.button("Cancel the switch").click()
    expect(visitor.dialog).to_contain_text("The switch to Required, scheduled for")
    visitor.dialog.get_by_role("button", name="Keep it").click()
    expect(card).to_contain_text("for 30 % of users")
    visitor.button("Cancel the switch").click()
    visitor.dialog.get_by_role("button", name="Cancel the switch").click()
    now = page.evaluate("Date.now()")
    at = datetime.datetime.fromtimestamp(now / 1000 // 60 * 60 + 60, datetime.timezone.utc)
    to.select_option("optional")
    expect(share).to_be_hidden()
    page.get_by_label("At (").fill(at.strftime("%Y-%m-%dT%H:%M"))
    visitor.button("Schedule", exact=True).click()
    expect(visitor.button("Cancel the switch")).to_be_visible()


def scheduled(visitor):
    visitor.open("apps/guard/enforcement")
    expect(visitor.page.locator(".state-card.optional.active")).to_be_visible(timeout=65_000)
    say("the scheduled switch was made")


def preset(visitor):
    """A preset of which only the policy is saved says so, and is finished by sending it again."""
    page = visitor.page
    visitor.open("apps/guard/policy")
    visitor.button("Choose a provider").click()
    visitor.dialog.get_by_label("Provider").select_option("firebase")
    visitor.dialog.get_by_label("Tenant").fill("my-project")
    page.route("**/apps/guard/key-source", lambda route: route.abort() if route.request.method == "PUT" else route.continue_())
    send = visitor.dialog.get_by_role("button", name="Set the policy")
    send.click()
    expect(visitor.dialog).to_contain_text("The policy is set, but its keys are not followed yet.")
    accessible(visitor, "a preset")
    page.unroute("**/apps/guard/key-source")
    send.click()
    visitor.told("The policy is saved and in force; the keys are fetched now.")
    expect(page.get_by_label("Issuer (iss)")).to_have_value("https://securetoken.google.com/my-project")
    say("a preset that was saved in part is explained and finished")


def require_of_some(visitor, gateway, write_key):
    """Requires tokens of 50 %, then of 90 % of the users. Requests without tokens do not trigger the automatic return."""
    page = visitor.page
    visitor.open("apps/guard/enforcement")
    visitor.button("Switch to Required").click()
    dialog = visitor.dialog
    dialog.get_by_label("Begin with").fill("50")
    dialog.get_by_text("Return to Optional when tokens stop working").click()
    dialog.get_by_label("Users whose token stopped working, %").fill("1")
    dialog.get_by_label("Minimum number of users").fill("1")
    dialog.get_by_label("Type guard to confirm").fill("guard")
    dialog.get_by_role("button", name="Switch to Required").click()
    expect(page.locator(".state-card.required")).to_contain_text("For 50 % of users.")
    answers = {gateway.send(f"user-{number}", key=write_key) for number in range(9)}
    assert answers == {200, 401}, answers
    ramp = page.get_by_label("Enforced for")
    ramp.fill("90")
    visitor.button("Apply", exact=True).click()
    expect(visitor.dialog).to_contain_text("now rejected for 50 % of users. After the change they are rejected for 90 %.")
    visitor.dialog.get_by_role("button", name="Raise the share").click()
    expect(page.locator(".state-card.required")).to_contain_text("For 90 % of users.")
    for number in range(30):
        gateway.send(f"user-{number}", key=write_key)
    visitor.open("apps/guard/failures?range=1h")
    visitor.open("apps/guard/enforcement")
    expect(page.locator(".state-card.required")).to_contain_text("For 90 % of users.")
    assert json.loads(gateway.run("enforcement", "show", "guard", "--json"))["auto_return"]["minimum_requests"] == 1
    # The timer of scheduled switches also checks the automatic return each second. The switch below shows that it ran.
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=4)
    gateway.run("enforcement", "set", "guard", "required", "--percent", "95", "--at", at.strftime("%Y-%m-%dT%H:%M:%SZ"), "--yes")
    expect(page.locator(".state-card.required.active")).to_contain_text("For 95 % of users.", timeout=20_000)
    say("Required for a part of the users rejects only those users; requests without tokens do not end it")


def rotate(visitor, gateway):
    """The steps of a key rotation advance when a token of the new key arrives."""
    page = visitor.page
    visitor.open("apps/shop/keys")
    visitor.button("Add public key").first.click()
    visitor.dialog.get_by_label("Public key", exact=True).fill(gateway.read("next", "public.pem"))
    visitor.dialog.get_by_label("Description (optional)").fill("the new key")
    expect(visitor.dialog.locator(".candidate")).to_be_visible()
    visitor.dialog.get_by_role("button", name="Add public key").click()
    step = page.locator(".steps [aria-current=step]")
    expect(step).to_contain_text("Waiting for the first token")
    visitor.button("Manage").first.click()
    delete = page.get_by_role("menuitem", name="Delete public key")
    expect(delete).to_have_attribute("aria-disabled", "true")
    expect(delete).to_contain_text("primary")
    page.keyboard.press("Escape")
    assert gateway.send("user-7", gateway.token("user-7", "next")) < 300
    expect(step).to_contain_text("Make it the primary key")
    step.get_by_role("button", name="Make primary key").click()
    primary = page.get_by_label("Primary key")
    expect(primary).to_contain_text("the new key")
    visitor.button("Undo").click()
    expect(primary).not_to_contain_text("the new key")
    step.get_by_role("button", name="Make primary key").click()
    expect(primary).to_contain_text("the new key")
    expect(step).to_contain_text("Wait until the old tokens have expired")
    say("the first token of a new key enables the next step; the key becomes primary, with undo; the primary key cannot be deleted")
