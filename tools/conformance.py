"""Runs the scenarios of Conformance against the clients, and prints a table with a row for each scenario.

The clients are swift, web (in Node), chromium (the web client with IndexedDB) and c; the default is all. Clients that this
machine cannot run are named and skipped. With --build, the Swift tests and libcountersign are built first. Exit status 1 if a
scenario failed, does not match Conformance/schema.json, or was skipped without a reason by a client that it is for.
"""

import argparse
import collections
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import typing
from pathlib import Path

from .common import ROOT

SCENARIOS = ROOT / "Conformance/scenarios"
LIBRARY = ROOT / ".build/debug/libCountersignC.so"
ALL = {"signed_user", "access_token", "bloomreach"}


class Client(typing.NamedTuple):
    """A client: its name in scenarios, its modes, and the command that runs the scenarios."""
    name: str
    modes: set
    command: list


CLIENTS = {
    "swift": Client("swift", ALL, ["swift", "test", "--skip-build", "--disable-xctest", "--filter", r"^ConformanceTests\."]),
    "web": Client("web", {"signed_user"}, ["node", "--test", "Clients/web/test/conformance.test.js"]),
    "chromium": Client("web", {"signed_user"}, [sys.executable, "-B", "-m", "tools", "web", "--conformance"]),
    "c": Client("c", ALL, [sys.executable, "-B", "Tests/Clients/conformance", "--library", str(LIBRARY)]),
}


def lack(name):
    """The missing requirement of a client; None if it can run."""
    if name == "web" and not shutil.which("node"):
        return "node is not installed"
    if name == "chromium":
        if not shutil.which("chromium") and not shutil.which("chromium-browser"):
            return "Chromium is not installed"
        if not importlib.util.find_spec("playwright"):
            return "Playwright is not installed"
    if name == "c" and not os.path.exists("/proc/self/task"):
        return "it needs /proc of Linux to find out whether another process is idle"
    return None


def read():
    """All scenarios, each with the mode of its file."""
    found = []
    for path in sorted(SCENARIOS.glob("*.json")):
        file = json.loads(path.read_text())
        found += [dict(scenario, mode=file["mode"]) for scenario in file["scenarios"]]
    keys = [(scenario["mode"], scenario["name"]) for scenario in found]
    for key in set(keys):
        if keys.count(key) > 1:
            sys.exit(f"conformance: two scenarios of {key[0]} are called “{key[1]}”")
    return found


def check():
    """Validates the files with the schema, if the Python module jsonschema is installed."""
    try:
        import jsonschema
    except ImportError:
        print("conformance: the schema was not checked (no Python module jsonschema)", file=sys.stderr)
        return
    schema = json.loads((ROOT / "Conformance" / "schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    errors = [
        f"{path.name}, {'/'.join(map(str, error.absolute_path))}: {jsonschema.exceptions.best_match([error]).message}"
        for path in sorted(SCENARIOS.glob("*.json")) for error in validator.iter_errors(json.loads(path.read_text()))]
    if errors:
        sys.exit("conformance: files do not match the schema\n" + "\n".join(errors))


def run(client):
    """Runs a client's command. Returns for each (mode, name) whether the scenario passed, or the reason why it was skipped."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        environment = dict(os.environ, COUNTERSIGN_CONFORMANCE_REPORT=str(report))
        done = subprocess.run(CLIENTS[client].command, cwd=ROOT, env=environment, capture_output=True,
                              text=True, check=False)
        lines = report.read_text().splitlines() if report.exists() else []
        outcomes = {(one["mode"], one["name"]): one.get("passed", one.get("reason")) for one in map(json.loads, lines)}
        if not outcomes or not all(outcomes.values()):
            sys.stderr.write("".join(
                f"{line}\n" for line in (done.stdout + done.stderr).splitlines()
                if "error:" in line or "Caught error" in line or not outcomes))
        return outcomes


def main(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m tools conformance", description=__doc__)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("clients", nargs="*", choices=[*CLIENTS, []])
    options = parser.parse_args(arguments)
    names = options.clients or list(CLIENTS)
    for name in list(names):
        if reason := lack(name):
            if options.clients:
                sys.exit(f"conformance: {name} cannot run here: {reason}")
            print(f"conformance: {name} is skipped: {reason}", file=sys.stderr)
            names.remove(name)
    check()
    scenarios = read()
    if options.build and "swift" in names:
        subprocess.run(["swift", "build", "--build-tests"], cwd=ROOT, check=True)
    if options.build and "c" in names:
        subprocess.run(["swift", "build", "--product", "CountersignC"], cwd=ROOT, check=True)
    outcomes = {name: run(name) for name in names}

    counts = {name: {"passed": 0, "FAILED": 0, "not run": 0} for name in names}
    reasons = {name: collections.Counter() for name in names}
    width = max(len(scenario["name"]) for scenario in scenarios)
    mode = None
    for scenario in scenarios:
        if scenario["mode"] != mode:
            mode = scenario["mode"]
            print(f"\n{mode:{width}}  " + "  ".join(f"{name:8}" for name in names))
        cells = []
        for name in names:
            client = CLIENTS[name]
            is_for = mode in client.modes and client.name in scenario.get("clients", [client.name])
            outcome = outcomes[name].get((mode, scenario["name"]))
            reason = outcome if isinstance(outcome, str) else None if is_for else scenario.get("because", "it has another mode")
            cell = "–" if reason else "not run" if outcome is None else "passed" if outcome else "FAILED"
            if reason:
                reasons[name][reason] += 1
            else:
                counts[name][cell] += 1
            cells.append(f"{cell:8}")
        print(f"{scenario['name']:{width}}  " + "  ".join(cells).rstrip())
    print(f"\n{len(scenarios)} scenarios")
    for name in names:
        passed, failed, missing = counts[name].values()
        print(f"{name:8} run {passed + failed}, passed {passed}" + (f", not run {missing}" if missing else ""))
        for reason, count in reasons[name].most_common():
            print(f"{count:11} do not apply: {reason}")
    return 1 if any(count["FAILED"] or count["not run"] for count in counts.values()) else 0
