"""Runs crash tests (rows) in parts until each row has run all its rounds, and checks with injected faults that each row can fail.

A run has a seed, and `make prove ONLY=row SEED=n` repeats its random decisions, but not the timing of processes and threads. Results
are in .build/prove/state.json, for one commit. A change of the tested sources deletes the results; a change of a patch repeats its
controls. A control runs a row on a copy of the sources with a patch of Torture/Faults, built in .build/prove/fault. The control is
good (`red`) if the row fails for the reason that the patch names.

Exit status: 0 if each selected row has run all its rounds without a failure and its controls are red; 1 if a row or a control is bad;
2 if the sources have uncommitted changes; 3 if rounds or controls remain.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import NamedTuple

from .common import ROOT

FOLDER, FAULTS = ROOT / ".build/prove", ROOT / "Torture/Faults"
TREE, STATE = FOLDER / "fault", FOLDER / "state.json"
MARK = TREE / "planted"
# A change of these paths deletes the results.
TESTED = ["Sources", "Clients", "Torture", "tools", "Tests/Clients", "Package.swift", ":!Torture/Faults/*.patch"]
LONGEST = 1800
PRODUCTS = {"countersign-cli": "countersign-cli", "CountersignC": "libCountersignC.so", "CountersignTorture": "CountersignTorture"}
# Torture is built in the build folder of the main package, on which it depends, so that shared targets are built once.
TORTURE = ["--package-path", "Torture", "--scratch-path", ".build"]
ONCE = "Acknowledged events are stored, once."


class Row(NamedTuple):
    group: str
    rounds: int
    # The number of rounds in one run, and in a control.
    slice: int
    command: str
    # Patches of Torture/Faults. Empty if the scenario itself runs a faulty variant, and fails if that variant passes.
    controls: str
    promise: str


def tool(words):
    return f"{sys.executable} -B -m tools {words} --rounds {{rounds}} --countersign {{countersign-cli}}"


def device(name):
    return f"{{CountersignTorture}} {name} {{rounds}}"


def client(name):
    return tool(f"clients {name} --kills --library {{CountersignC}}")


ROWS = {
    "sdk-kill": Row("sdk", 1000, 100, device("D1"), "sdk-deletes-early", ONCE),
    "sdk-both": Row("sdk", 300, 50, device("D3"), "sdk-acknowledges-early", ONCE),
    "sdk-power": Row("sdk", 400, 40, device("D4"), "sdk-acknowledges-early", "Acknowledged events survive a power failure."),
    "sdk-flush": Row("sdk", 200, 40, device("D5"), "sdk-acknowledges-early", "No event is acknowledged after a failed flush."),
    "sdk-full": Row("sdk", 100, 20, device("F1"), "", "Events that are stored are sent and deleted on a full disk."),
    "sdk-days": Row("sdk", 20, 2, device("B1"), "sdk-acknowledges-early",
                    "Wrong clocks, portals and full disks lose nothing, and no wait is hidden."),
    "sdk-shared": Row("sdk", 200, 20, device("D14"), "sdk-acknowledges-early", "Four processes share a queue, one is killed, and no event is lost."),
    "sdk-users": Row("sdk", 1000, 50, device("I1"), "sdk-forgets-log-out", "Each event has its user, and a log-out survives a kill."),
    "sdk-held": Row("sdk", 200, 20, device("I2"), "", "Each event has its user while another process holds the queue."),
    "sdk-stopped": Row("sdk", 100, 20, device("I3"), "", "A log-out does not wait for a stopped process."),
    "sdk-users-flush": Row("sdk", 100, 20, device("I4"), "", "Each event has its user after failed flushes and a power failure."),
    "sdk-refresh": Row("sdk", 600, 60, device("A3"), "refresh-rejects-parent", "No crash in a refresh ends a session (rounds are seconds)."),
    "c": Row("clients", 300, 30, client("c"), "sdk-acknowledges-early", ONCE),
    "python": Row("clients", 300, 30, client("python"), "sdk-acknowledges-early", ONCE),
    "jvm": Row("clients", 300, 30, client("jvm"), "sdk-acknowledges-early", ONCE),
    "web": Row("clients", 300, 10, tool("web kill"), "web-acknowledges-early", ONCE),
    "kill": Row("gateway", 1000, 50, tool("torture kill"), "gateway-answers-early gateway-stores-twice",
                "Acknowledged events are stored and read, once and in order, while another program opens the databases."),
    "power": Row("gateway", 400, 40, tool("torture power"), "gateway-syncs-nothing", "Acknowledged events survive a power failure."),
    "fsync": Row("gateway", 200, 20, tool("torture fsync"), "gateway-answers-early", "No event is acknowledged after a failed flush."),
    "full": Row("gateway", 100, 10, tool("torture full"), "gateway-answers-early", "A full disk is a 503, and storing resumes within 5 seconds."),
    "delete": Row("gateway", 100, 10, tool("torture delete"), "gateway-answers-early", "An app is deleted completely, and no event of another app is."),
    "refresh": Row("tokens", 10_000, 500, tool("torture refresh"), "refresh-ignores-generation",
                   "One new refresh token a generation, and no crash ends a session."),
    "storm": Row("tokens", 10_000, 1000, tool("torture storm"), "refresh-ignores-generation",
                 "All sessions refresh at once, twice each: one new token each, no failure."),
    "consumers": Row("out", 200, 20, tool("consumers"), "consumer-moves-early", "Workers that are killed book each event once."),
    "leases": Row("out", 20, 1, tool("torture consumers"), "consumer-moves-early",
                  "Consumers that die, lag and seek read each event in order (about 15 kills of the gateway a round)."),
    "leases-power": Row("out", 20, 1, tool("torture outages"), "gateway-syncs-nothing", "The same with about 15 power failures a round."),
    "webhooks": Row("out", 200, 20, tool("webhooks"), "webhook-reuses-id", "Each event at least once and in order, and an id has one content."),
    "webhooks-power": Row("out", 200, 20, tool("webhooks --webhooks 0 --power"), "gateway-syncs-nothing", "The same after power failures."),
    "files": Row("out", 200, 20, tool("exports"), "file-listed-early", "Each event in one listed file, in order."),
    "files-power": Row("out", 100, 20, tool("exports --power"), "file-not-flushed", "The same after power failures."),
    "stream": Row("out", 200, 20, tool("stream kills"), "stream-forgets-position", "Each event in the stream once, in order."),
    "stream-power": Row("out", 200, 20, tool("stream kills --power"), "stream-forgets-position", "The same after power failures."),
    "gateways": Row("cluster", 100, 20, tool("torture gateways"), "gateway-answers-early reader-passes-horizon",
                    "Acknowledged events are stored once, and no reader passes an event that is not yet visible."),
    "database": Row("cluster", 100, 10, tool("torture database"), "gateway-answers-early", ONCE),
    "wire": Row("cluster", 20, 5, tool("torture wire"), "gateway-answers-early", "A gateway without its database acknowledges nothing."),
    "unknown": Row("cluster", 100, 10, tool("torture unknown"), "gateway-stores-twice", "Lost answers of commits store nothing twice (rounds are seconds)."),
    "failover": Row("cluster", 20, 2, tool("torture failover"), "gateway-answers-early", "A synchronous standby has all acknowledged events."),
    "rolling": Row("cluster", 20, 5, tool("torture rolling"), "reader-passes-horizon", "Restarts of each gateway lose nothing."),
    "clocks": Row("cluster", 20, 10, tool("torture clocks"), "refresh-ignores-generation", "Clocks an hour apart lose no lease and no session."),
    "keys": Row("cluster", 40, 20, tool("torture keys"), "keys-confirmed-early", "No request is accepted after a key's deletion is confirmed."),
    "families": Row("cluster", 1000, 100, tool("torture rotate"), "refresh-ignores-generation", "One new refresh token a generation at all gateways."),
}


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)


class Fault:
    """A patch of Torture/Faults, the products to build with it, and a regular expression of the failure that a row must report."""

    def __init__(self, name):
        self.path = FAULTS / f"{name}.patch"
        text = self.path.read_text()
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.builds = (re.search(r"^Builds: (.+)$", text, re.M) or ["", ""])[1].split()
        self.says = re.search(r"^Says: (.+)$", text, re.M)[1]

    @staticmethod
    def planted():
        """The name of the patch that is applied to the copy of the sources, or an empty text."""
        return MARK.read_text() if MARK.exists() else ""

    def plant(self, log):
        """Applies this patch to the copy of the sources and builds the products. Returns whether the builds succeeded."""
        if not TREE.exists():
            TREE.mkdir(parents=True)
            files = git("ls-files", "-co", "--exclude-standard", "-z").stdout
            subprocess.run(["xargs", "-0", "cp", "-a", "--parents", "-t", TREE], input=files, text=True, cwd=ROOT, check=True)
            # Copies the build folder too, so that only changed files are compiled.
            (TREE / ".build").mkdir()
            built = [path for path in (ROOT / ".build").iterdir() if path.name != "prove"]
            subprocess.run(["cp", "-a", "--reflink=auto", "-t", TREE / ".build", *built], check=True)
        patch = ["patch", "-p1", "-s", "--no-backup-if-mismatch", "-d", TREE, "-i", TREE / "applied.patch"]
        if self.planted():
            subprocess.run([*patch, "-R"], check=True)
        shutil.copy(self.path, TREE / "applied.patch")
        subprocess.run(patch, check=True)
        MARK.write_text(self.path.stem + " ")  # The space marks a patch that is applied and not built.
        for product in self.builds:
            more = TORTURE if product == "CountersignTorture" else []
            build = ["nice", "swift", "build", "--disable-build-manifest-caching", *more, "--product", product]
            if os.geteuid() == 0 and sys.platform == "linux":
                # Mounts the copy over the original folder, because build products contain absolute paths.
                build = ["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && cd "$2" && shift 2 && "$@"', "sh", TREE, ROOT, *build]
            if subprocess.run(build, cwd=TREE, stdout=log, stderr=log).returncode:
                return False
        MARK.write_text(self.path.stem)
        return True


class Proof:
    def __init__(self, keeps=False):
        self.state = json.loads(STATE.read_text()) if STATE.exists() else {}
        if not keeps and (not self.state or git("diff", "--quiet", self.state["commit"], "--", *TESTED).returncode):
            shutil.rmtree(FOLDER, ignore_errors=True)
            self.state = {"commit": git("rev-parse", "HEAD").stdout.strip(), "rows": {}}
        (FOLDER / "logs").mkdir(parents=True, exist_ok=True)

    def row(self, name):
        return self.state["rows"].setdefault(name, {"runs": [], "controls": {}})

    def done(self, name):
        return sum(run["rounds"] for run in self.row(name)["runs"] if run["verdict"] == "good")

    def bad(self, name):
        return [run for run in self.row(name)["runs"] if run["verdict"] != "good"]

    def controls(self, name):
        """The verdict of each control of a row."""
        if not ROWS[name].controls:
            return ["red" if self.done(name) else "not run"]
        known = self.row(name)["controls"]
        return [known[fault]["verdict"] if fault in known and known[fault]["patch"] == Fault(fault).digest else "not run"
                for fault in ROWS[name].controls.split()]

    def save(self):
        STATE.write_text(json.dumps(self.state, indent=1))

    def run(self, name, rounds, seed, fault=None):
        """Runs a row's command in a new process group. Returns the result and the path of the log."""
        paths = {product: (TREE if fault and product in fault.builds else ROOT) / ".build/debug" / path for product, path in PRODUCTS.items()}
        words = ROWS[name].command.format(rounds=rounds, **paths).split()
        log, began = FOLDER / "logs" / f"{name}-{seed}{'-control' if fault else ''}.log", time.monotonic()
        environment = {**os.environ, "PROVE_SEED": str(seed), "PROVE_WEB": f"{TREE if fault else ROOT}/Clients/web"}
        print(f"prove: {name}, {rounds} rounds, seed {seed}{', ' + fault.path.stem if fault else ''}", flush=True)
        with open(log, "w") as file:
            process = subprocess.Popen(words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
            try:
                code = process.wait(LONGEST)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        text = log.read_text(errors="replace")
        skipped = re.search(r"^[\w ]+: skipped, (.*)$", text, re.M)
        verdict = "skipped" if skipped else "no end" if code is None else "BAD" if code else "good"
        said = skipped[1] if skipped else next(iter(text.strip().splitlines()[-1:]), "")
        return {"seed": seed, "rounds": rounds, "verdict": verdict, "seconds": round(time.monotonic() - began), "said": said[:400]}, log

    def try_row(self, name, target):
        rounds = min(ROWS[name].slice, target - self.done(name))
        result, log = self.run(name, rounds, random.randrange(1 << 32))
        self.row(name)["runs"].append(result)
        print(f"prove: {name}: {result['verdict']} after {result['seconds']} s: {result['said']}", flush=True)

    def control(self, name, planned):
        """Runs a row with a fault. Records whether the row failed for the reason that the patch names."""
        fault, began = Fault(planned), time.monotonic()
        with open(FOLDER / "logs" / f"build-{planned}.log", "w") as log:
            is_built = Fault.planted() == planned or fault.plant(log)
        if is_built:
            result, log = self.run(name, ROWS[name].slice, random.randrange(1 << 32), fault)
            reason = re.search(f"^.*(?:{fault.says}).*$", log.read_text(errors="replace"), re.M)
            result["verdict"] = {"good": "GREEN", "skipped": "skipped"}.get(result["verdict"], "red" if reason else "unclear")
            result["said"] = reason[0].strip()[:400] if reason else result["said"]
        else:
            result = {"verdict": "not built", "said": log.name}
        self.row(name)["controls"][planned] = {**result, "seconds": round(time.monotonic() - began), "patch": fault.digest}
        print(f"prove: {name}: {planned}: {result['verdict']}: {result['said']}", flush=True)

    def next(self, names, target):
        """The next step: first each row once, then the controls, sorted by fault, then the row with the lowest share of its rounds."""
        due = [name for name in names if self.done(name) < target(name) and not self.bad(name)]
        first = [name for name in due if not self.row(name)["runs"]]
        if first:
            return self.try_row, first[0], target(first[0])
        planted = Fault.planted()
        controls = sorted(((fault, name) for name in names if not self.bad(name)
                           for fault, verdict in zip(ROWS[name].controls.split(), self.controls(name)) if verdict == "not run"),
                          key=lambda pair: (pair[0] != planted, pair))
        if controls:
            return self.control, *reversed(controls[0])
        name = min(due, key=lambda name: self.done(name) / target(name), default=None)
        return (self.try_row, name, target(name)) if name else None

    def table(self, names, target):
        print(f"\nprove: commit {self.state['commit'][:12]}\n{'row':16} {'rounds':>13}  {'verdict':9} {'controls':17} {'seconds':>7}  last seed")
        status = 0
        for name in names:
            row, runs, bad, controls = ROWS[name], self.row(name)["runs"], self.bad(name), self.controls(name)
            verdict = bad[0]["verdict"] if bad else "good" if runs else "not run"
            last = (bad or runs or [{"seed": "-"}])[-1]["seed"]
            print(f"{name:16} {self.done(name):>6}/{row.rounds:<6}  {verdict:9} {', '.join(controls):17} {sum(run['seconds'] for run in runs):>7}  {last}")
            if {verdict, *controls} - {"good", "red", "skipped", "not run"}:
                status = 1
            elif self.done(name) < target(name) or {verdict, *controls} != {"good", "red"}:
                status = status or 3
        return status


def main(arguments):
    listed = "\n".join(f"  {name:16} {row.group:8} {row.rounds:6}  {row.controls or 'its own control':27} {row.promise}" for name, row in ROWS.items())
    parser = argparse.ArgumentParser(prog="make prove", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=f"Rows, with their groups, rounds and controls:\n{listed}")
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows or groups (default: all)")
    parser.add_argument("--minutes", type=float, default=10, help="starts no run after this many minutes; 0 prints the table")
    parser.add_argument("--rounds", type=int, help="at most this many rounds for each row")
    parser.add_argument("--seed", type=int, help="repeats one run of one row, and does not count it")
    options = parser.parse_args(arguments)
    names = [name for name, row in ROWS.items() if not options.names or {name, row.group} & set(options.names)]
    if unknown := set(options.names) - set(ROWS) - {row.group for row in ROWS.values()}:
        parser.error(f"unknown row or group: {unknown.pop()}; python3 -m tools prove --help lists them")
    if options.seed is None and git("status", "--porcelain", "--", *TESTED).stdout:
        print("prove: commit your changes first, because results belong to a commit", file=sys.stderr)
        return 2
    proof, end = Proof(keeps=options.seed is not None), time.monotonic() + options.minutes * 60
    if options.seed is not None:
        result, log = proof.run(names[0], options.rounds or ROWS[names[0]].slice, options.seed)
        print(log.read_text(), end="")
        return 0 if result["verdict"] == "good" else 1

    def target(name):
        return min(ROWS[name].rounds, options.rounds or ROWS[name].rounds)

    while time.monotonic() < end and (step := proof.next(names, target)):
        step[0](*step[1:])
        proof.save()
    return proof.table(names, target)
