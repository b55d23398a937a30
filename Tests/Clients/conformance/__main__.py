"""Runs the scenarios of Conformance against libcountersign, over sockets and in real time.

    Tests/Clients/conformance [--library .build/debug/libCountersignC.so] [WORD...]

With words, runs only scenarios whose names contain at least one word. The environment variable
COUNTERSIGN_CONFORMANCE_REPORT is the path of a file to write, with a line of JSON for each scenario: `passed`, or
the `reason` for which it was skipped. Requires Linux, whose /proc shows whether another process is idle.
"""
import argparse
import asyncio
import collections
import json
import os
import re
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from stage import Stage  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
# The name of this client in the `clients` of a scenario.
NAME = "c"
# Scenarios that wait for more seconds are skipped.
LONGEST = 3
AT_ONCE = 4
TIMES = {"at", "request_times", "next_attempt_in"}


def names_of(value):
    """Returns the names of all members that are not null, at any depth of a JSON value."""
    if isinstance(value, list):
        return {name for one in value for name in names_of(one)}
    if isinstance(value, dict):
        return {name for name, one in value.items() if one is not None}.union(*map(names_of, value.values()))
    return set()


def obstacle(scenario):
    """Returns the reason for skipping a scenario, or None."""
    steps = scenario["steps"]
    if NAME not in scenario.get("clients", [NAME]):
        return scenario["because"]
    if any("device_clock" in step for step in steps):
        return "a process cannot set its machine's clock"
    waits = sum(step.get("wait", 0) for step in steps)
    answers = scenario.get("provider", []) + [one for step in steps for one in step.get("provider", [])]
    if waits > LONGEST or names_of(answers) & {"takes", "hangs"}:
        return f"it waits for more than {LONGEST} s"
    if names_of(steps) & TIMES or waits and scenario.get("configuration", {}).get("flush") != "manual":
        return "its result depends on the length of a back-off, which is random"
    if re.search(r"jwt \w+ [1-5]?\d\b", json.dumps(scenario)):
        return "a token expires within a minute, and a busy machine may need longer"
    if "fails" in names_of(answers):
        return "a provider of the C interface returns a token or null, and cannot fail"
    return None


async def run(scenario, turns):
    async with turns:
        folder = tempfile.mkdtemp(prefix="countersign-conformance-")
        try:
            await Stage(scenario, folder).run()
            return True
        except asyncio.TimeoutError:
            print(f"error: {scenario['mode']}: {scenario['name']}: did not end in time", file=sys.stderr)
        except AssertionError as error:
            print(f"error: {scenario['mode']}: {scenario['name']}: {error}", file=sys.stderr)
        except Exception:
            print(f"error: {scenario['mode']}: {scenario['name']}:\n{traceback.format_exc()}", file=sys.stderr)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return False


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", type=Path, default=ROOT / ".build/debug/libCountersignC.so")
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    os.environ["COUNTERSIGN_LIBRARY"] = str(given.library.resolve())
    scenarios = []
    for path in sorted((ROOT / "Conformance" / "scenarios").glob("*.json")):
        file = json.loads(path.read_text())
        scenarios += [{**scenario, "mode": file["mode"]} for scenario in file["scenarios"]
                      if not given.words or any(word in scenario["name"] for word in given.words)]
    turns = asyncio.Semaphore(AT_ONCE)
    reasons = [obstacle(scenario) for scenario in scenarios]
    chosen = [scenario for scenario, reason in zip(scenarios, reasons) if reason is None]
    outcomes = iter(await asyncio.gather(*(run(scenario, turns) for scenario in chosen)))
    lines = [
        {"mode": scenario["mode"], "name": scenario["name"], **({"reason": reason} if reason else {"passed": next(outcomes)})}
        for scenario, reason in zip(scenarios, reasons)]
    if report := os.environ.get("COUNTERSIGN_CONFORMANCE_REPORT"):
        Path(report).write_text("".join(json.dumps(line) + "\n" for line in lines))
    passed = sum(line.get("passed", False) for line in lines)
    print(f"c: {passed} of {len(chosen)} scenarios passed; {len(scenarios) - len(chosen)} were not run:")
    for reason, count in collections.Counter(filter(None, reasons)).most_common():
        print(f"{count:6} {reason}")
    return 0 if passed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
