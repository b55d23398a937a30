"""Drives the dashboard in Chromium against a real gateway with real traffic.

Prints a line for each group of checks that passes. The first failed check ends the run with exit code 1, and
browser-test-failure.png shows the page.
"""
import argparse
import contextlib
import os

from playwright.sync_api import sync_playwright

from tools.common import PROGRAM, chromium
from tools.gateway import Shop
from . import account, factor, following, gateways, journey, newcomers, operators, rules, screens, services, trouble
from .day import Day
from .page import Visitor, say


def test(browser, owner, gateway):
    journey.first_sign_in(owner, gateway.link())
    write_key = rules.make_guard(owner)
    rules.schedule(owner)
    journey.add_key(owner, gateway)
    journey.measure(owner)
    journey.watch_live(owner, gateway)
    journey.read_chart(owner)
    journey.look_at_sample(owner)
    journey.each_code(owner, gateway)
    journey.enforce(owner, gateway)
    rules.rotate(owner, gateway)
    services.token_service(owner)
    services.customers(owner, gateway)
    services.bloomreach(owner)
    services.owner_tasks(owner)
    services.last_key(owner, gateway)
    services.unknown_addresses(owner)
    following.verdicts(owner)
    following.consumers(owner, gateway)
    following.streams(owner, gateway)
    following.files(owner)
    following.webhooks(owner, gateway)
    gateways.alone(owner)
    storage = owner.context.storage_state()
    operators.check(browser, gateway, storage)
    trouble.keyboard(browser, gateway.url)
    trouble.viewer(browser, owner, screens.all_of("shop"))
    account.change_password(browser, gateway.url, "vera")
    factor.second_factor(browser, gateway)
    trouble.expired(browser, gateway.url)
    trouble.stopped(owner, trouble.live_cut(browser, gateway, storage), gateway)
    screens.check(browser, gateway.url, storage)
    rules.scheduled(owner)
    rules.require_of_some(owner, gateway, write_key)
    rules.preset(owner)
    owner.check()


def main(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m tools browser", description=__doc__)
    parser.add_argument("--countersign", default=str(PROGRAM), type=os.path.abspath)
    parser.add_argument("--screenshots")
    options = parser.parse_args(arguments)
    gateway = Shop(options.countersign)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(**chromium())
            owner = Visitor(browser, gateway.url)
            try:
                if options.screenshots:
                    journey.first_sign_in(owner, gateway.link())
                    Day(gateway).run()
                    screens.pictures(browser, gateway.url, owner.context.storage_state(), options.screenshots)
                else:
                    test(browser, owner, gateway)
                    newcomers.check(browser, options.countersign)
                    gateways.several(browser, options.countersign)
            except BaseException:
                say(f"a check failed. The gateway's warnings and errors, and the last lines of its log:\n{gateway.complaints()}")
                with contextlib.suppress(Exception):
                    # The newest window, because a check usually fails there.
                    browser.contexts[-1].pages[-1].screenshot(path="browser-test-failure.png")
                for window in Visitor.windows:
                    with contextlib.suppress(Exception):
                        say(f"open window: {window.describe()}")
                raise
            browser.close()
    finally:
        gateway.remove()
    say("done" if options.screenshots else "all passed")
