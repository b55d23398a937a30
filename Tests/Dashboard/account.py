"""Members of the dashboard change their own passwords."""
import re

from playwright.sync_api import expect

from .page import PASSWORD, Visitor, say
from .screens import accessible

NEXT = "another long sentence for the test"


def change_password(browser, url, name):
    """After the change the other browser is signed out, this one is not, and only the new password signs in."""
    here, there = Visitor(browser, url), Visitor(browser, url)
    for visitor in (here, there):
        visitor.page.goto(f"{url}/admin/")
        visitor.sign_in(name)
        expect(visitor.page.get_by_role("heading", name="Overview")).to_be_visible()
    here.button(f"Account: {name}").click()
    accessible(here, "the account menu")
    here.page.get_by_role("menuitem", name="Change password").click()
    current = here.dialog.get_by_label("Current password", exact=True)
    fresh = here.dialog.get_by_label("New password", exact=True)
    again = here.dialog.get_by_label("New password again", exact=True)
    send = here.button("Change it")
    current.fill("a wrong long sentence")
    for first, second, field, text in (("short", "short", fresh, "at least 12"), (NEXT, "something else", again, "differ")):
        fresh.fill(first)
        again.fill(second)
        send.click()
        expect(field).to_be_focused()
        expect(field).to_have_accessible_description(re.compile(text))
    again.fill(NEXT)
    assert here.press(send) == 422
    expect(current).to_be_focused()
    expect(current).to_have_attribute("aria-invalid", "true")
    expect(here.dialog.get_by_text("This is not your current password.")).to_be_visible()
    accessible(here, "the dialog that changes the password")
    current.fill(PASSWORD)
    assert here.press(send) == 204
    here.told("Your password has been changed")
    here.open("audit")
    expect(here.page.get_by_role("heading", name="Audit log")).to_be_visible()
    there.button("Refresh").click()
    expect(there.page.get_by_role("heading", name="Sign in")).to_be_visible()
    there.sign_in(name)
    expect(there.page.get_by_text("The name or the password is wrong.")).to_be_visible()
    there.sign_in(name, NEXT)
    expect(there.page.get_by_role("heading", level=1)).not_to_have_text("Sign in")
    here.leave()
    there.leave()
    say("invalid passwords are reported at their fields; the change signs out other browsers")
