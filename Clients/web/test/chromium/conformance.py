"""The scenarios of Conformance in Chromium, with IndexedDB as storage: `python3 -m tools web --conformance`."""
import json
import os

from playwright.sync_api import sync_playwright

from tools.common import ROOT, chromium
from .pages import Site, Visit, run, say

SCENARIOS = ROOT / "Conformance/scenarios"


def outcomes(browser, site):
    """The outcome of each scenario: `mode`, `name` and `failure` (None if it passed)."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site.url}/test/pages/conformance.html")
    Visit.ready(page)
    found = [one for path in sorted(SCENARIOS.glob("*.json")) for one in run(page, "text => conformance(text)", path.read_text())]
    context.close()
    return found


def main():
    with sync_playwright() as playwright:
        # The endpoint gets no requests, because the scenarios have their own server.
        found = outcomes(playwright.chromium.launch(**chromium()), Site("http://127.0.0.1:1", None))
    report = os.environ.get("COUNTERSIGN_CONFORMANCE_REPORT")
    for outcome in found:
        passed = outcome["failure"] is None
        if report:
            with open(report, "a") as file:
                file.write(json.dumps({"mode": outcome["mode"], "name": outcome["name"], "passed": passed}) + "\n")
        if not passed:
            say(f"error: {outcome['name']}: {outcome['failure']}")
    say(f"{sum(outcome['failure'] is None for outcome in found)} of {len(found)} scenarios passed")

