"""Tests the second factor: setup with a QR code, sign-in, the requirement for all members, the reset by an owner."""
import base64
import hmac
import re
import struct
import time

from playwright.sync_api import expect

from .page import PASSWORD, Visitor, say
from .screens import accessible

OWNER = "fiona"
MEMBER = "felix"


class Phone:
    """An authenticator app (TOTP, RFC 6238) that never returns the same code twice."""

    def __init__(self, secret):
        self.key = base64.b32decode(secret)
        self.last = 0

    def code(self):
        # The gateway accepts each time step once, and also the step after the present one, so this uses that step.
        while (step := int(time.time()) // 30 + 1) <= self.last:
            time.sleep(0.5)
        self.last = step
        digest = hmac.digest(self.key, struct.pack(">Q", step), "sha1")
        place = digest[19] & 15
        return f"{(struct.unpack('>I', digest[place:place + 4])[0] & 0x7FFFFFFF) % 1_000_000:06d}"


def enrol(visitor):
    """Sets up a second factor, in the dialog or on the screen of a member who must. Returns the phone and the recovery codes."""
    page = visitor.page
    page.get_by_label("Your password").fill(PASSWORD)
    visitor.button("Continue").click()
    expect(page.get_by_role("img", name="QR code")).to_be_visible()
    accessible(visitor, "the QR code of the second factor")
    phone = Phone(page.locator(".copyable code").inner_text())
    page.get_by_label("Code from the app").fill("000000")
    assert visitor.press(visitor.button("Turn it on")) == 422
    expect(page.get_by_text("The code is wrong")).to_be_visible()
    page.get_by_label("Code from the app").fill(phone.code())
    assert visitor.press(visitor.button("Turn it on")) == 200
    expect(visitor.button("I have stored them")).to_be_visible()
    codes = page.locator(".copyable code").inner_text().split()
    assert len(codes) == 10 and all(re.fullmatch(r"([a-z2-7]{4}-){3}[a-z2-7]{4}", code) for code in codes), codes
    accessible(visitor, "the recovery codes")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    with open(download.value.path()) as file:
        assert set(codes) <= set(file.read().split())
    visitor.button("I have stored them").click()
    return phone, codes


def own(visitor, name):
    visitor.button(f"Account: {name}").click()
    visitor.page.get_by_role("menuitem", name="Second factor").click()


def sign_in(visitor, name, code):
    visitor.page.goto(f"{visitor.url}/admin/")
    visitor.sign_in(name)
    expect(visitor.page.get_by_role("heading", name="Two-step sign-in")).to_be_visible()
    visitor.page.get_by_label("Code", exact=True).fill(code)
    return visitor.press(visitor.button("Sign in"))


def second_factor(browser, gateway):
    with open(gateway.path("password"), "w") as file:
        file.write(PASSWORD)
    for name, role in ((OWNER, "owner"), (MEMBER, "operator")):
        gateway.run("admin", "user", "create", name, "--role", role, "--password-file", gateway.path("password"))
    owner, member, later = (Visitor(browser, gateway.url) for _ in range(3))
    for visitor, name in ((owner, OWNER), (member, MEMBER)):
        visitor.page.goto(f"{gateway.url}/admin/")
        visitor.sign_in(name)
        expect(visitor.page.get_by_role("heading", name="Overview")).to_be_visible()
    # An owner without a second factor cannot require it: that would lock the owner out.
    owner.open("members")
    owner.page.get_by_text("Require a second factor from every member", exact=True).click()
    owner.button("Require it").click()
    owner.told("Set up your own second factor first")
    own(owner, OWNER)
    phone, codes = enrol(owner)
    owner.told("The second factor is on")

    assert sign_in(later, OWNER, "000000") == 401
    expect(later.page.get_by_text("The code is wrong or has already been used.")).to_be_visible()
    accessible(later, "the second step")
    later.page.get_by_label("Code", exact=True).fill(phone.code())
    assert later.press(later.button("Sign in")) == 200
    expect(later.page.get_by_role("heading", name="Overview")).to_be_visible()
    later.leave()
    by_code = Visitor(browser, gateway.url)
    assert sign_in(by_code, OWNER, codes[0].upper()) == 200
    own(by_code, OWNER)
    expect(by_code.dialog).to_contain_text("9 recovery codes left")
    by_code.button("New recovery codes").click()
    by_code.page.get_by_label("Your password").fill(PASSWORD)
    assert by_code.press(by_code.button("Make new ones")) == 200
    expect(by_code.dialog.locator(".copyable code")).not_to_contain_text(codes[1])
    by_code.button("I have stored them").click()
    by_code.leave()

    owner.open("members")
    owner.page.get_by_text("Require a second factor from every member", exact=True).click()
    owner.button("Require it").click()
    owner.told("Every member now needs a second factor")
    member.open("audit")
    expect(member.page.get_by_role("heading", name="Set up a second factor")).to_be_visible()
    accessible(member, "the setup of a required second factor")
    enrol(member)
    expect(member.page.get_by_role("heading", name="Audit log")).to_be_visible()
    member.leave()

    # Leaves the screen of members first, to load the list again with the factor of `member`.
    owner.open("")
    owner.open("members")
    owner.button(f"Reset the second factor of {MEMBER}").click()
    owner.button("Reset", exact=True).click()
    expect(owner.page.get_by_role("row", name=MEMBER)).to_contain_text("off")
    expect(owner.page.locator(".skeleton")).to_have_count(0)
    owner.page.get_by_text("Require a second factor from every member", exact=True).click()
    owner.button("Stop requiring it").click()
    owner.told("A second factor is now optional")
    own(owner, OWNER)
    owner.button("Turn it off").click()
    owner.page.get_by_label("Your password").fill(PASSWORD)
    assert owner.press(owner.button("Turn it off")) == 204
    owner.told("The second factor is off")
    owner.leave()
    for name in (OWNER, MEMBER):
        gateway.run("admin", "user", "delete", name)
    say("a second factor is set up by QR code, checked at sign-in, replaced by a recovery code, required, reset and turned off")
