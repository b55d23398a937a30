"""Tests the screens of the token service, customers, the Bloomreach project, published keys, backups and settings."""
import json
import re

from playwright.sync_api import expect

from .page import MARKUP, say


def secret(visitor, pattern):
    """Checks the form of a secret that a dialog shows once, and closes the dialog."""
    expect(visitor.dialog.get_by_text("You won't see this again.")).to_be_visible()
    shown = visitor.dialog.locator("pre").inner_text().strip()
    assert re.fullmatch(pattern, shown), f"the secret does not match {pattern}"
    visitor.button("I have stored it").click()


def token_service(visitor):
    page = visitor.page
    visitor.open("apps/shop/sessions")
    visitor.button("Create a client").click()
    visitor.dialog.get_by_label("Name").fill(MARKUP)
    visitor.dialog.get_by_label("refresh_token").uncheck()
    visitor.dialog.get_by_role("button", name="Create client").click()
    secret(visitor, r"\S{20,}")
    clients = page.get_by_role("table", name="Clients")
    expect(clients).to_contain_text(MARKUP)
    expect(clients).to_contain_text("client_credentials")
    expect(clients).not_to_contain_text("refresh_token")
    for _ in range(2):
        visitor.button("Open a session").click()
        visitor.dialog.get_by_label("User").fill("user-1")
        visitor.dialog.get_by_role("button", name="Open session").click()
        secret(visitor, r"\S{20,}")
    sessions = page.get_by_role("table", name="Sessions")
    expect(sessions.get_by_text("active")).to_have_count(2)
    expect(visitor.button("Revoke the session of user-1")).to_have_count(2)
    visitor.button("Revoke the session of user-1").first.click()
    visitor.dialog.get_by_role("button", name="Revoke").click()
    expect(sessions.get_by_text("revoked: operator")).to_have_count(1)
    page.get_by_label("User", exact=True).fill("user-1")
    visitor.button("Search").click()
    visitor.button("End all sessions of this user").click()
    visitor.dialog.get_by_role("button", name="End all").click()
    expect(sessions.get_by_text("revoked: operator")).to_have_count(2)
    lifetime = page.get_by_label("Access token lifetime", exact=True)
    lifetime.fill("600")
    page.get_by_label("Access token lifetime: unit").select_option("seconds")
    assert visitor.press(visitor.button("Save the rules")) == 200
    page.reload()
    expect(lifetime).to_have_value("10")
    expect(page.get_by_label("Access token lifetime: unit")).to_have_value("minutes")
    visitor.button(f"Delete the client {MARKUP}").click()
    visitor.dialog.get_by_label("Type delete to confirm").fill("delete")
    visitor.dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No client")).to_be_visible()
    say("a client and sessions are created with secrets that are shown once, revoked and deleted; the rules are saved")


def customers(visitor, gateway):
    """Shows the data of a customer and erases it."""
    assert gateway.send("customer-9") == 200
    page = visitor.page
    visitor.open("apps/shop/customers")
    page.get_by_label("Customer").fill("customer-9")
    visitor.button("Search").click()
    profile = page.locator("main")
    expect(profile.get_by_text("customer-9", exact=True)).to_be_visible()
    visitor.button("Delete this customer").click()
    visitor.dialog.get_by_label("Type delete to confirm").fill("delete")
    visitor.dialog.get_by_role("button", name="Delete").click()
    visitor.told("The customer and 1 event are deleted.")
    expect(page.get_by_text("The app has no data about this customer.")).to_be_visible()
    visitor.open("audit")
    expect(page.get_by_text("customer.show").first).to_be_visible()
    expect(page.get_by_text("customer.delete").first).to_be_visible()
    say("a customer is shown and deleted with all events, and the audit log has an entry of each")


def bloomreach(visitor):
    page = visitor.page
    visitor.open("apps/shop/project")
    webhook = page.get_by_label("Webhook for push notifications")
    save = visitor.button("Save the project")
    webhook.fill("https://hooks.example/push")
    assert visitor.press(save) == 200
    secret(visitor, r"whsec_\S+")
    visitor.told("The project is saved.")
    page.get_by_label("Project token").fill("not a token")
    assert visitor.press(save) == 422
    expect(page.locator(".notice.bad")).to_be_visible()
    page.get_by_label("Project token").fill("shop-token")
    webhook.fill("")
    page.get_by_label("Access to the App Inbox").select_option("required")
    assert visitor.press(save) == 200
    visitor.told("The project is saved.")
    page.reload()
    page.get_by_label("Access to the App Inbox").select_option("off")
    save.click()
    assert visitor.press(visitor.dialog.get_by_role("button", name="Save the project")) == 200
    page.reload()
    expect(page.get_by_label("Project token")).to_have_value("shop-token")
    expect(webhook).to_have_value("")
    visitor.button("Add a private key").click()
    visitor.dialog.get_by_label("Id").fill("backend-1")
    visitor.dialog.get_by_role("button", name="Add private key").click()
    secret(visitor, r"\S{20,}")
    expect(page.get_by_role("rowheader", name="backend-1")).to_be_visible()
    visitor.button("Consent categories").click()
    visitor.button("Add", exact=True).click()
    visitor.dialog.get_by_label("Id").fill("newsletter")
    editor = visitor.dialog.get_by_label("The object as clients get it")
    editor.fill('{\n  "name": \n}')
    visitor.dialog.get_by_role("button", name="Save").click()
    expect(visitor.dialog.get_by_text("Line 3 is not JSON.")).to_be_visible()
    expect(editor).to_have_attribute("aria-invalid", "true")
    editor.fill(json.dumps({"id": "another", "name": MARKUP}, indent=2))
    visitor.dialog.get_by_role("button", name="Save").click()
    expect(visitor.dialog.get_by_text("Id: must be the one in the path")).to_be_visible()
    editor.fill(json.dumps({"name": MARKUP, "legitimate_interest": False, "sources": {}, "translations": {}}, indent=2))
    visitor.dialog.get_by_role("button", name="Save").click()
    expect(visitor.dialog).to_have_count(0)
    expect(page.get_by_role("table", name="Items")).to_contain_text(MARKUP)
    say("a project is changed, its webhook created and removed; an item with errors is not saved, and its errors are named")


def owner_tasks(visitor):
    """Tests the tasks of owners: published keys, alerts, retention, the audit log's export, backups, signing keys, settings."""
    page = visitor.page
    visitor.open("apps/shop/keys")
    visitor.button("Follow published keys").click()
    visitor.dialog.get_by_label("Address").fill("https://127.0.0.1:9/jwks.json")
    visitor.dialog.get_by_role("button", name="Follow").click()
    expect(visitor.dialog.get_by_role("alert")).to_contain_text("Address: the address is private")
    expect(visitor.dialog.get_by_role("alert")).to_contain_text("Fix the highlighted fields")
    expect(visitor.dialog.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    visitor.dialog.get_by_text("It may be on a private network").click()
    visitor.dialog.get_by_role("button", name="Follow").click()
    expect(page.get_by_text("https://127.0.0.1:9/jwks.json")).to_be_visible()
    visitor.button("Unfollow").click()
    visitor.dialog.get_by_role("button", name="Unfollow").click()
    expect(visitor.button("Follow published keys")).to_be_visible()
    visitor.open("apps/shop/settings")
    address = page.get_by_label("Address")
    address.fill("https://hooks.example/alerts")
    assert visitor.press(visitor.button("Save", exact=True).last) == 200
    secret(visitor, r"whsec_\S+")
    expect(page.get_by_text("A secret is set.")).to_be_visible()
    address.fill("")
    assert visitor.press(visitor.button("Save", exact=True).last) == 200
    expect(page.get_by_text("A secret is created when you save.")).to_be_visible()
    days = page.get_by_label("Keep events, days")
    for value in ("30", ""):
        days.fill(value)
        if value:
            visitor.button("Save", exact=True).first.click()
            expect(visitor.dialog).to_contain_text("None is older than that now.")
            assert visitor.press(visitor.dialog.get_by_role("button", name="Save", exact=True)) == 200
        else:
            assert visitor.press(visitor.button("Save", exact=True).first) == 200
        page.reload()
        expect(days).to_have_value(value)
    size = page.get_by_label("Keep events, at most", exact=True)
    size.fill("1")
    page.get_by_label("Keep events, at most: unit").select_option("kB")
    visitor.button("Save", exact=True).first.click()
    expect(visitor.dialog).to_contain_text("are deleted until the others have at most 1.0 kB")
    expect(visitor.dialog).to_contain_text("All apps together have")
    go = visitor.dialog.get_by_role("button", name="Save and delete")
    expect(go).to_be_disabled()
    visitor.dialog.get_by_role("button", name="Cancel").click()
    page.reload()
    expect(size).to_have_value("")
    visitor.open("audit")
    page.get_by_role("main").get_by_label("App").select_option("shop")
    for kind in ("CSV", "NDJSON"):
        with page.expect_download() as download:
            page.get_by_role("link", name=kind, exact=True).click()
        lines = open(download.value.path()).read().splitlines()
        assert len(lines) > 1, (kind, lines)
    assert {json.loads(line)["app"] for line in lines} == {"shop"}
    visitor.open("system")
    # The screen has three lists. Refresh must load each.
    for title in ("Backups", "Signing keys", "Settings"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    with (page.expect_response("**/admin/api/backups**"), page.expect_response("**/admin/api/signing-keys**"),
          page.expect_response("**/admin/api/settings**")):
        visitor.button("Refresh").click()
    visitor.button("Back up now").click()
    page.get_by_role("button", name=re.compile("^Verify ")).first.click()
    expect(page.get_by_text("is intact.")).to_be_visible()
    visitor.button("Create a key").click()
    visitor.dialog.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("table", name="Signing keys")).to_contain_text("signs")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="port", exact=True))
    expect(row).to_contain_text("flag --port")
    say("published keys, alerts, retention, the audit log's export, backups, signing keys and settings work")


def last_key(visitor, gateway):
    """The dialog that deletes the last key of an app names the consequences for users. A key that is not the last is deleted."""
    gateway.run("app", "create", "lone")
    gateway.run("key", "add", "lone", gateway.path("good", "public.pem"))
    for state, said in (("disabled", None), ("optional", "gets a warning"), ("required", "is rejected")):
        gateway.run("enforcement", "set", "lone", state, "--yes")
        visitor.open("apps/lone/keys")
        visitor.button("Manage").click()
        visitor.page.get_by_role("menuitem", name="Delete public key").click()
        expect(visitor.dialog.get_by_role("button", name="Delete public key")).to_be_visible()
        alert = visitor.dialog.get_by_role("alert")
        if said:
            expect(alert).to_contain_text("This is the last key of the app.")
            expect(alert).to_contain_text(said)
            expect(visitor.dialog.get_by_role("button", name="Delete public key")).to_be_disabled()
        else:
            expect(alert).to_have_count(0)
        visitor.dialog.get_by_role("button", name="Cancel").click()
    gateway.run("key", "add", "lone", gateway.path("other", "public.pem"))
    visitor.open("apps/lone/keys")
    visitor.button("Manage").last.click()
    visitor.page.get_by_role("menuitem", name="Delete public key").click()
    expect(visitor.dialog.get_by_role("button", name="Delete public key")).to_be_enabled()
    expect(visitor.dialog.get_by_role("alert")).to_have_count(0)
    visitor.dialog.get_by_role("button", name="Delete public key").click()
    visitor.told("The key is deleted.")
    expect(visitor.button("Manage")).to_have_count(1)
    gateway.run("app", "delete", "lone", "--confirm", "lone")
    say("a key is deleted; for the last key of an app the dialog names the consequences for users")


def unknown_addresses(visitor):
    """An unknown address shows an error, an unknown filter is ignored, and a user id is removed from the URL."""
    for route in ("apps/shop/webhooks/zzz", "apps/shop/events/zzz", "audit/zzz"):
        visitor.open(route)
        expect(visitor.page.get_by_text("This page does not exist.")).to_be_visible()
    visitor.open("apps/shop/webhooks?deliveries=zzz")
    expect(visitor.page.get_by_text("This webhook does not exist.")).to_be_visible()
    visitor.open("apps/shop/events?type=foo")
    expect(visitor.page.get_by_label("Type", exact=True)).to_have_value("")
    expect(visitor.page.get_by_role("alert")).to_have_count(0)
    visitor.open("apps/shop/customers?id=user-1")
    expect(visitor.page).to_have_url(re.compile("customers$"))
    # The screen requests /cluster only if the gateway uses a database.
    asked = []
    note = lambda request: asked.append(request.url)
    visitor.page.on("request", note)
    visitor.open("gateways")
    visitor.page.remove_listener("request", note)
    assert asked and not any("/cluster" in url for url in asked), asked
    say("unknown addresses show an error, and no user id stays in the URL")
