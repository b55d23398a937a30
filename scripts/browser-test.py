#!/usr/bin/env python3
"""Drives the dashboard in Chromium against a real gateway with real traffic.

    scripts/browser-test.py .build/debug/countersign [--screenshots docs/images]

Each step says what it did; the first that fails ends the run with exit code 1 and leaves a picture of the page.
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

PASSWORD = "a long sentence for the test"
MARKUP = '<script>window.hacked=1</script><img src=x onerror="window.hacked=1">'
APP_SCREENS = ["failures", "live", "keys", "enforcement", "policy", "events", "sessions", "project", "settings"]
SCREENS = ["", "audit", "members", "system"]


class Gateway:
    """A gateway on a free port with one app, its keys and its write key."""

    def __init__(self, program):
        self.program = os.path.abspath(program)
        self.folder = tempfile.mkdtemp(prefix="countersign-browser-")
        self.environment = {**os.environ, "COUNTERSIGN_DATA": os.path.join(self.folder, "data")}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.write_key = self.run("app", "create", "shop")
        for name in ("good", "other"):
            os.mkdir(self.path(name))
            self.run("key", "generate", "--out", self.path(name))
        self.log = open(self.path("serve.log"), "w+")
        self.process = subprocess.Popen([self.program, "serve", "--port", str(self.port)], env=self.environment,
                                        stdout=self.log, stderr=subprocess.STDOUT)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], env=self.environment, check=True, timeout=60,
                              capture_output=True, text=True).stdout.strip()

    def link(self):
        """The one-time link that `serve` printed."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with open(self.path("serve.log")) as log:
                found = re.search(r"https?://\S+/admin/#/setup/[\w.-]+", log.read())
            if found:
                return found.group(0)
            time.sleep(0.1)
        raise AssertionError("the gateway printed no one-time link:\n" + open(self.path("serve.log")).read())

    def token(self, user, key="good", *more):
        return self.run("token", "create", "--key", self.path(key, "private.pem"), "--user", user, *more)

    def send(self, user, token=None, name="Order Completed"):
        event = {"type": "track", "messageId": f"{time.time_ns()}", "userId": user, "event": name}
        headers = {"X-Write-Key": self.write_key, "Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(f"{self.url}/v1/batch", json.dumps({"batch": [event]}).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Watch:
    """What a page must never do."""

    def __init__(self, context, origin):
        self.faults = []
        context.on("page", self.page)
        context.on("request", lambda request: None if request.url.startswith((origin, "data:", "blob:"))
                   else self.faults.append(f"request to another origin: {request.url}"))

    def page(self, page):
        page.on("pageerror", lambda error: self.faults.append(f"script error: {error}"))
        page.on("console", self.console)

    def console(self, message):
        # Chromium itself writes each answer of 4xx to the console; those are the API's business.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(f"console: {message.text}")

    def check(self, page):
        assert not self.faults, self.faults
        assert not page.evaluate("window.hacked"), f"stored markup ran on {page.url}"


def say(text):
    print(f"browser: {text}", flush=True)


def open_screen(page, url, route):
    page.goto(f"{url}/admin/#/{route}")
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0, timeout=10_000)


def check_screens(browser, watch_of, url, storage, app):
    """axe, markup, console and width on every screen, in both themes, on a desktop and on a phone."""
    for scheme in ("light", "dark"):
        for width in (1280, 360):
            context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800},
                                          reduced_motion="reduce", storage_state=storage)
            watch = watch_of(context)
            page = context.new_page()
            for route in [*SCREENS, *(f"apps/{app}/{name}" for name in APP_SCREENS)]:
                open_screen(page, url, route)
                trouble = page.locator(".notice.bad").all_inner_texts()
                assert not trouble, (route, trouble)
                found = Axe().run(page).response["violations"]
                assert not found, [(scheme, width, route, item["id"], item["nodes"][0]["html"]) for item in found]
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{route} is {wide} wide on a screen of {width}"
                watch.check(page)
            context.close()
    say("every screen: no axe violation, no markup run, no console error, no other origin, no horizontal scroll")


def first_sign_in(page, link):
    page.goto(link)
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Create the owner and sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    say("signed in for the first time by the printed link")


def add_key(page, gateway):
    open_screen(page, gateway.url, "apps/shop/keys")
    page.get_by_role("button", name="Add Public Key").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Public key", exact=True).fill(open(gateway.path("good", "private.pem")).read())
    expect(dialog.get_by_text("This is a private key. It was not saved")).to_be_visible()
    dialog.get_by_label("Public key", exact=True).fill(open(gateway.path("good", "public.pem")).read())
    dialog.get_by_label("Description (optional)").fill(MARKUP)
    expect(dialog.locator(".candidate")).to_contain_text("RS256")
    dialog.get_by_role("button", name="Add Public Key").click()
    expect(page.locator(".key-description").first).to_have_text(MARKUP)
    say("a private key was refused, a public one added after its preview")


def provoke(gateway):
    assert gateway.send("user-1", gateway.token("user-1"), MARKUP) < 300
    gateway.send(MARKUP)
    gateway.send("user-1", gateway.token("user-1", "good", "--now", "1700000000"))
    gateway.send("user-2", gateway.token("user-1"))
    gateway.send("user-1", gateway.token("user-1", "other"))
    gateway.send("user-1", "not-a-token")


def watch_live(page, gateway):
    open_screen(page, gateway.url, "apps/shop/live")
    expect(page.locator(".live-status")).to_contain_text("Live")
    provoke(gateway)
    table = page.locator(".live-table tbody")
    for text in ("Accepted", "26 MISSING_TOKEN", "22 EXPIRED", "21 SUBJECT_MISMATCH", "27 NO_MATCHING_PUBLIC_KEYS", "20 DECODING_ERROR"):
        expect(table.get_by_text(text).first).to_be_visible(timeout=10_000)
    say("good and bad requests appear live: 20, 21, 22, 26, 27")


def read_chart(page, gateway):
    open_screen(page, gateway.url, "apps/shop/failures?range=15m")
    bar = page.locator(".bar[data-code='22']").first
    expect(bar).to_be_visible(timeout=15_000)
    bar.hover()
    expect(page.locator(".chart-tip")).to_contain_text("22 EXPIRED")
    page.mouse.move(0, 0)
    chart = page.locator("#failure-chart")
    chart.focus()
    for key in ("End", "ArrowLeft", "ArrowRight", "ArrowUp"):
        chart.press(key)
    expect(page.locator(".chart-tip")).to_be_visible()
    bar.click()
    expect(page.locator("#samples")).to_contain_text("EXPIRED")
    page.keyboard.press("Escape")
    expect(chart).to_be_focused()
    page.get_by_role("button", name="Table", exact=True).click()
    expect(page.get_by_role("columnheader", name="22 EXPIRED")).to_be_visible()
    page.get_by_role("button", name="Chart", exact=True).click()
    page.locator("#samples tbody a").first.click()
    expect(page.get_by_role("heading", name="Verdict, check by check")).to_be_visible()
    page.get_by_role("button", name="Check again with today's keys").click()
    expect(page.locator(".recheck .notice")).to_be_visible()
    say("the chart was read by mouse and by keyboard, down to one request")


def enforce(page, gateway):
    open_screen(page, gateway.url, "apps/shop/enforcement")
    page.get_by_role("button", name="Switch to Required").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".impact")).to_contain_text("would have been rejected")
    confirm = dialog.get_by_role("button", name="Switch to Required")
    expect(confirm).to_be_disabled()
    dialog.get_by_label("Type shop to confirm").fill("shop")
    confirm.click()
    expect(page.locator(".state-card.required.active")).to_be_visible()
    assert gateway.send("user-1") == 401
    page.get_by_role("button", name="Disable now").click()
    expect(page.locator(".state-card.disabled.active")).to_be_visible()
    assert gateway.send("user-1") < 300
    page.get_by_role("button", name="Switch to Optional").click()
    expect(page.locator(".state-card.optional.active")).to_be_visible()
    say("Required after its preview rejects, Disabled lets data flow again")


def pictures(browser, url, storage, folder):
    os.makedirs(folder, exist_ok=True)
    for name, route, scheme, width in [("failures", "apps/shop/failures?range=15m", "light", 1280),
                                       ("failures-dark", "apps/shop/failures?range=15m", "dark", 1280),
                                       ("enforcement", "apps/shop/enforcement", "light", 1280),
                                       ("keys-phone", "apps/shop/keys", "light", 360)]:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900},
                                      reduced_motion="reduce", storage_state=storage)
        page = context.new_page()
        open_screen(page, url, route)
        page.wait_for_timeout(300)
        file = os.path.join(folder, f"dashboard-{name}.png")
        page.screenshot(path=file)
        assert os.path.getsize(file) < 200_000, f"{file} is too large"
        context.close()
    say(f"pictures are in {folder}")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--screenshots")
    options = arguments.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        print("browser: skipped, there is no Chromium here (scripts/setup.sh browser installs it)")
        return 0
    gateway = Gateway(options.program)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox"] if os.getuid() == 0 else [])
            context = browser.new_context(reduced_motion="reduce")
            context.set_default_timeout(15_000)
            watch = Watch(context, gateway.url)
            page = context.new_page()
            try:
                first_sign_in(page, gateway.link())
                add_key(page, gateway)
                open_screen(page, gateway.url, "apps/shop/enforcement")
                page.get_by_role("button", name="Switch to Optional").click()
                expect(page.locator(".state-card.optional.active")).to_be_visible()
                watch_live(page, gateway)
                read_chart(page, gateway)
                enforce(page, gateway)
                watch.check(page)
                storage = context.storage_state()
                if options.screenshots:
                    pictures(browser, gateway.url, storage, options.screenshots)
                else:
                    check_screens(browser, lambda other: Watch(other, gateway.url), gateway.url, storage, "shop")
            except BaseException:
                page.screenshot(path="browser-test-failure.png")
                raise
            browser.close()
    finally:
        gateway.stop()
    say("all passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
