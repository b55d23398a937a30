"""Runs checks, with logs in .build/check, and prints a table. The default is the checks of CI except `make test`."""

import argparse
import os
import re
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from .common import ROOT

POSTGRESQL = "COUNTERSIGN_TEST_STORAGE=postgresql scripts/test.sh"
# Tests of the gateway that run on PostgreSQL in CI too, because their results depend on the storage.
ESSENTIAL = ("NativeDialect|ForgedIdentity|EventProof|StoredEvent|EventFiles|KeyRing|Analytics|Following|StreamWay|StreamRunner|DeliveryConformance|AppSetting|AppDeletion|"
             "CustomerStore|BloomreachInbox|TokenFamilyTable|WebhookRunner")
TOOL = "python3 -B -m tools "
PROGRAM = "swift build --product countersign-cli && " + TOOL
# Builds the program with NATS over the program without NATS, so these checks run last. A separate build folder would
# compile everything again.
NATS = "export COUNTERSIGN_NATS=1 && scripts/setup.sh && swift build --product countersign-cli && scripts/text-lint.py && "
# `ONLY=` keeps the ONLY of `make check` out of targets that have an ONLY of their own.
CHECKS = {
    "test": "make --no-print-directory test",
    "storage": f"{POSTGRESQL} --filter '^((Countersign)?Gateway\\w*Tests\\.({ESSENTIAL})Tests/|CountersignCLITests\\.DatabaseCommandTests/)' "
               "--filter '^GatewayPostgreSQLTests\\.'",
    "postgresql": POSTGRESQL + ' --filter "${FILTER:-^(Gateway\\w+|CountersignGateway|CountersignCLI|Countersign(Bloomreach)?|BrazeCompat|'
                  'ExponeaCompat|BackgroundGeolocationCompat)Tests\\.}"',
    # The gateway's files are in /dev/shm, so that the dashboard does not wait for a disk that other checks keep busy.
    # TMPDIR changes after `swift build`, because SwiftPM's lock is in TMPDIR.
    "browser": "swift build --product countersign-cli && { [ ! -w /dev/shm ] || export TMPDIR=/dev/shm; } && " + TOOL + "browser",
    "web": "scripts/web.sh",
    "web-chromium": PROGRAM + "web",
    "docs": "scripts/setup.sh web && scripts/docs.sh && " + TOOL + "site",
    "packages": "scripts/packages-check.sh",
    "apple": "scripts/apple-check.sh ios15.0",
    "apple-macos": "scripts/apple-check.sh macosx13.0",
    "objc": "scripts/objc-check.sh",
    "flutter": TOOL + "flutter",
    "samples": PROGRAM + "samples",
    "package": "scripts/consumer-test.sh swiftbuild",
    "package-native": "scripts/consumer-test.sh native",
    "consumers": PROGRAM + "consumers",
    "c": "swift build --product CountersignC && " + PROGRAM + "clients c --library .build/debug/libCountersignC.so --rounds 1",
    "clients": "make --no-print-directory clients ONLY=",
    "conformance": "make --no-print-directory conformance",
    # Slow: on a busy machine some tests reach their time limits.
    "tsan": "swift test --sanitize=thread --scratch-path .build-tsan --disable-xctest -Xswiftc -DTHREAD_SANITIZER --filter '^(Countersign(Gateway|Transport|Delivery|Bloomreach|"
            "Locations)?|BrazeCompat|Gateway(HTTP|Ingest|Storage|Delivery|Observability|Admin|Model))Tests\\.'",
    "sqlite": "COUNTERSIGN_POSTGRESQL=0 swift build --product countersign-cli --scratch-path .build-sqlite",
    "tokens": PROGRAM + "tokens",
    "vendors": PROGRAM + "vendors",
    "oauth": PROGRAM + "oauth",
    "identity-provider": PROGRAM + "identity_provider",
    "webhooks": PROGRAM + "webhooks",
    "exports": PROGRAM + "exports",
    "openapi": PROGRAM + "openapi",
    "metrics": PROGRAM + "metrics",
    "otlp": PROGRAM + "otlp",
    "proxies": PROGRAM + "proxies",
    "packaging": "scripts/packaging-test.sh",
    "deploy": TOOL + "deploy",
    "examples": "scripts/examples.sh",
    "fuzz": "make --no-print-directory fuzz",
    "torture": PROGRAM + "torture devices gateway",
    "cluster": "scripts/setup.sh cluster && " + PROGRAM + "torture cluster",
    "prove": "make --no-print-directory prove ONLY= ROUNDS=20 MINUTES=120",
    "demo-cluster": "make --no-print-directory demo CLUSTER=1",
    "service": "scripts/service-test.sh",
    "stream": NATS + TOOL + "stream",
    "nats": NATS + TOOL + "stream kills --rounds 2",
    "bench": "make --no-print-directory bench",
}
# The checks of the first group mostly wait, so they run in parallel with the second group, which uses both cores.
GROUPS = (("browser", "web"), ("storage", "docs", "packages", "apple", "objc", "flutter", "samples", "package", "consumers", "c"))


def obstacle(name):
    """The reason why this machine cannot run a check; None if it can."""
    if name == "service" and os.geteuid() != 0:
        return "needs root"
    if name in ("storage", "postgresql") and os.environ.get("COUNTERSIGN_POSTGRESQL") == "0":
        return "COUNTERSIGN_POSTGRESQL is 0"
    return None


class Runner:
    def __init__(self):
        self.folder, self.rows, self.lock = ROOT / ".build/check", [], threading.Lock()
        self.folder.mkdir(parents=True, exist_ok=True)

    def run(self, names):
        for name in names:
            began, log = time.monotonic(), self.folder / f"{name}.log"
            if reason := obstacle(name):
                self.rows.append((name, "skipped", 0, reason))
                continue
            with open(log, "w") as file:
                code = subprocess.run(CHECKS[name], shell=True, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file,
                                      stderr=subprocess.STDOUT).returncode
            text = log.read_text(errors="replace")
            with self.lock:
                print(text, end="", flush=True)
                reasons = re.findall(r"^.*(?:skipped|not checked).*$", text, re.M)
                self.rows.append((name, "FAILED" if code else "passed", time.monotonic() - began,
                                  f"see {log.relative_to(ROOT)}" if code else "; ".join(reasons[:2])[:100]))

    def table(self):
        print()
        for name, outcome, seconds, reason in self.rows:
            print(f"check: {name:13} {outcome:8} {seconds:6.0f} s  {reason}".rstrip())
        return 1 if any(outcome == "FAILED" for _, outcome, _, _ in self.rows) else 0


def main(arguments):
    parser = argparse.ArgumentParser(prog="make check ONLY=…", description=__doc__, epilog=f"Checks: {', '.join(CHECKS)}, all")
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args(arguments).names
    if unknown := set(names) - set(CHECKS) - {"all"}:
        parser.error(f"unknown check {unknown.pop()}; the checks are: {', '.join(CHECKS)}, all")
    runner = Runner()
    if names:
        runner.run([name for name in CHECKS if name != "storage"] if "all" in names else names)
        return runner.table()
    with ThreadPoolExecutor() as pool:
        list(pool.map(runner.run, GROUPS))
    runner.run(["nats"])
    return runner.table()
