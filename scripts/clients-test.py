#!/usr/bin/env python3
"""Runs the clients over libcountersign against a real gateway with real tokens, and reads back what it has stored.

    scripts/clients-test.py c|python|jvm [--rounds N] [--mode MODE] [--library FILE] [--program .build/debug/countersign-cli]

`--rounds` is how often a process that records is killed with SIGKILL, in each mode or the one that is named: what it was told is
stored must arrive once. Without
`--library` it is the one of `make libcountersign`, for C with its symbols. The first thing that is not as it should be ends the
run with exit code 1.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from browser.gateway import Gateway

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / "Sources/SDK/CCountersign/include"
BUILT = {"c": ROOT / ".build/static/release/libCountersignC.so"}
INSTALLABLE = ROOT / ".build/libcountersign/libcountersign.so"


def say(text):
    print(f"clients: {text}", flush=True)


class Stand:
    """A gateway that requires tokens of all three kinds, and the credentials for them."""

    def __init__(self, program, library):
        self.library = library
        self.gateway = gateway = Gateway(program)
        gateway.run("key", "add", "shop", gateway.path("good", "public.pem"))
        gateway.run("enforcement", "set", "shop", "required", "--yes")
        # Of Bloomreach's clients only the App Inbox knows tokens: an app of their own.
        self.project_key = gateway.run("app", "create", "tea")
        gateway.run("project", "set", "tea", "--customer-tokens", "required")
        secret = gateway.run("project", "key", "add", "tea", "backend").splitlines()[-1]
        with open(gateway.path("secret"), "w") as file:
            file.write(secret)
        os.chmod(gateway.path("secret"), 0o600)
        for kind, content in {
            "inbox-message": {"id": "offer", "type": "html", "content": {"title": "Tea"}, "recipient": {"registered": "ada"}},
            "consent-category": {"id": "newsletter"},
            "in-app-message": {"id": "hello", "name": "Hello", "trigger": {"event_type": "session_start"}},
        }.items():
            with open(gateway.path(kind), "w") as file:
                json.dump(content, file)
            gateway.run("project", "put", "tea", kind, gateway.path(kind))
        self.ada = gateway.token("ada")
        self.bob = gateway.token("bob")
        self.expired = gateway.token("ada", "good", "--now", str(int(time.time()) - 7200), "--lifetime", "60")
        self.customer = gateway.run("token", "create", "--customer-id", "registered=ada", "--secret-file",
                                    gateway.path("secret"), "--kid", "backend")
        self.wait_for_rules()

    def wait_for_rules(self):
        """A running gateway takes changes over within a second."""
        for _ in range(100):
            if self.gateway.send("ada", self.ada, name="stand") == 200 and self.gateway.send("ada", name="stand") == 401 \
                    and self.has_inbox():
                return
            time.sleep(0.05)
        raise AssertionError("the gateway does not require tokens")

    def has_inbox(self):
        request = urllib.request.Request(
            f"{self.gateway.url}/webxp/projects/tea/appinbox/fetch",
            json.dumps({"customer_ids": {"registered": "ada"}}).encode(),
            {"Authorization": f"Bearer {self.customer}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return b"offer" in answer.read()
        except urllib.error.HTTPError:
            return False

    def session(self):
        return self.gateway.run("session", "create", "shop", "--user", "ada")

    def folder(self, name):
        path = self.gateway.path("devices", name)
        os.makedirs(path, exist_ok=True)
        return path

    def environment(self, name):
        """What the tests of a client are told."""
        return {
            **os.environ, "LD_LIBRARY_PATH": self.library, "COUNTERSIGN_LIBRARY": f"{self.library}/libcountersign.so",
            "STAND_ENDPOINT": self.gateway.url, "STAND_WRITE_KEY": self.gateway.write_key,
            "STAND_PROJECT": "tea", "STAND_PROJECT_KEY": self.project_key,
            "STAND_ADA": self.ada, "STAND_BOB": self.bob, "STAND_EXPIRED": self.expired,
            "STAND_REFRESH": self.session(), "STAND_CUSTOMER": self.customer, "STAND_FOLDER": self.folder(name),
        }

    def stored(self, prefix, app="shop", *only):
        """The names of stored events that begin so, in the order of arrival."""
        lines = self.gateway.run("event", "export", app, *only).splitlines()
        events = [json.loads(line) for line in lines]
        names = [event.get("event") or event.get("name") or event.get("event_type") or "" for event in events]
        return [name for name in names if name.startswith(prefix)]

    def locations(self):
        lines = self.gateway.run("event", "export", "shop").splitlines()
        return [event["location"]["uuid"] for event in map(json.loads, lines) if "location" in event]


def run(command, environment, **options):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))[:300]} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def example(name, folder, url):
    """A copy of an example that knows this gateway. docs/clients.md shows it as it is, but for C."""
    text = (ROOT / "Examples" / name).read_text()
    assert name.endswith(".c") or text in (ROOT / "docs/clients.md").read_text(), f"docs/clients.md shows another {name}"
    assert "http://127.0.0.1:8787" in text, name
    copy = pathlib.Path(folder) / os.path.basename(name)
    copy.write_text(text.replace("http://127.0.0.1:8787", url))
    return copy


def check_example(stand, command, environment):
    """Its event arrives, verified, from a queue of its own."""
    before = len(stand.stored("Order Completed", "shop", "--verdict", "verified"))
    with tempfile.TemporaryDirectory() as home:
        run([*command, stand.gateway.write_key, stand.gateway.token("user-1")], {**environment, "XDG_DATA_HOME": home})
    assert len(stand.stored("Order Completed", "shop", "--verdict", "verified")) == before + 1, command


# MARK: C

class C:
    """The driver in C, under the address sanitizer with its leak checker."""

    def __init__(self, folder, library, url):
        self.folder = folder
        driver, sample = ROOT / "Tests/Clients/driver.c", example("C/first_event.c", folder, url)
        sanitized = ["-fsanitize=address,undefined"]
        for name, source, flags in [("driver", driver, sanitized), ("first", sample, sanitized), ("plain", driver, [])]:
            run(["cc", "-g", "-Wall", "-Wextra", "-Werror", *flags, "-I", HEADER, source, "-o", f"{folder}/{name}",
                 "-L", library, "-lcountersign", "-lpthread"], os.environ)

    def test(self, stand):
        environment = {**stand.environment("c"), "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
                       "LSAN_OPTIONS": f"suppressions={ROOT}/Tests/Clients/lsan.supp:print_suppressions=0"}
        version = run([f"{self.folder}/driver", *(environment[f"STAND_{name}"] for name in (
            "FOLDER", "ENDPOINT", "WRITE_KEY", "PROJECT", "PROJECT_KEY", "ADA", "BOB", "REFRESH", "CUSTOMER"))], environment)
        expected = ["c first", "c second", "c screen", "c last", "c unanswered"]
        assert stand.stored("c ") == expected, stand.stored("c ")
        assert stand.locations() == ["c-location-1", "c-location-2"], stand.locations()
        assert stand.stored("c ", "tea") == ["c bloomreach"]
        check_example(stand, [f"{self.folder}/first"], environment)
        say(f"C: version {version.strip()}; three modes and the sample; no error, no leak")
        # Only Linux says whether another process is at rest.
        if os.path.exists("/proc/self/task"):
            scenarios = run([sys.executable, "-B", ROOT / "Tests/Clients/conformance", "--library", environment["COUNTERSIGN_LIBRARY"]],
                            os.environ)
            say(scenarios.splitlines()[0].rstrip(":"))

    def recorder(self, mode, environment, folder, number):
        configuration = {"dataDirectory": folder, **{
            "signed_user": {"endpoint": environment["STAND_ENDPOINT"], "writeKey": environment["STAND_WRITE_KEY"]},
            "access_token": {
                "http": {"url": f"{environment['STAND_ENDPOINT']}/api/locations", "batchSync": True},
                "authorization": {
                    "refreshUrl": f"{environment['STAND_ENDPOINT']}/api/refresh_token", "refreshToken": environment["STAND_REFRESH"],
                    "refreshPayload": {"refresh_token": "{refreshToken}"}}},
            "bloomreach": {"projectToken": environment["STAND_PROJECT"], "authorizationToken": environment["STAND_PROJECT_KEY"],
                           "baseUrl": environment["STAND_ENDPOINT"]},
        }[mode]}
        command = ["send", mode, json.dumps(configuration)] if number == "send" else ["record", mode, json.dumps(configuration), number]
        return [f"{self.folder}/plain", *command]


# MARK: Python

class Python:
    """The package, installed into a fresh virtual environment."""

    def __init__(self, folder, library, url):
        run([sys.executable, "-m", "venv", f"{folder}/venv"], os.environ)
        self.python = f"{folder}/venv/bin/python"
        self.example = example("Python/first_event.py", folder, url)
        # A copy: building leaves files in the folder.
        shutil.copytree(ROOT / "Clients/python", f"{folder}/python")
        run([self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{folder}/python"], os.environ)
        self.tests = ROOT / "Clients/python/tests"

    def test(self, stand):
        done = subprocess.run([self.python, "-B", "-W", "error", self.tests / "test_countersign.py"], cwd="/",
                              env=stand.environment("python"), capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        stored = sorted(stand.stored("python "))
        # What is recorded twice here is stored twice: nothing is.
        assert stored == sorted([
            "python first", "python expired", "python left 0", "python left 1", "python left 2"]), stored
        assert stand.locations() == ["python-location-1"], stand.locations()
        assert stand.stored("python ", "tea") == ["python bloomreach"]
        check_example(stand, [self.python, "-B", self.example], stand.environment("python"))
        ran = done.stderr.split("Ran ")[1].split(" in ")[0]
        say(f"Python: {ran} from a fresh virtual environment, three modes")

    def recorder(self, mode, environment, folder, number):
        return [self.python, "-B", self.tests / "record.py", folder, mode, number]


# MARK: JVM

class JVM:
    """The jar and its bridge, and the samples of two vendors in Java and Kotlin."""

    def __init__(self, folder, library, url):
        self.folder = f"{folder}/jvm"
        run([ROOT / "Clients/jvm/build.sh", library, HEADER, self.folder], os.environ)
        tests = ROOT / "Clients/jvm/src/test"
        java = [*sorted(tests.rglob("*.java")), example("Java/FirstEvent.java", folder, url)]
        kotlin = [*sorted(tests.rglob("*.kt")), example("Kotlin/FirstEvent.kt", folder, url)]
        stdlib = "/usr/share/java/kotlin-stdlib.jar"
        jar, compiled = f"{self.folder}/countersign.jar", f"{self.folder}/tests"
        # Each of the two refers to the other. Debian's Kotlin has today's type inference as an option.
        run(["kotlinc", "-Xnew-inference", "-nowarn", "-cp", jar, *kotlin, *java, "-d", compiled], os.environ)
        run(["javac", "--release", "11", "-cp", f"{jar}:{compiled}:{stdlib}", "-d", compiled, *java], os.environ)
        self.compiled = compiled
        self.java = ["java", "-Xcheck:jni", "-cp", f"{jar}:{compiled}:{stdlib}",
                     f"-Dcountersign.library={self.folder}/libcountersign_jni.so", "Tests"]

    def test(self, stand):
        # What Braze's documentation leaves to this file.
        with open(f"{self.compiled}/braze.xml", "w") as file:
            file.write(f"""<?xml version="1.0" encoding="utf-8"?>
<resources>
  <string name="com_braze_api_key">{stand.gateway.write_key}</string>
  <string name="com_braze_custom_endpoint">{stand.gateway.url}</string>
</resources>""")
        environment = {**stand.environment("jvm"), "XDG_DATA_HOME": stand.folder("jvm-home"),
                       "STAND_NEW_USER": stand.gateway.token("NEW-USER-ID")}
        output = run(self.java, environment)
        # The checker of JNI speaks on the standard output.
        assert len(output.splitlines()) == 1, output
        expected = ["jvm first", "jvm second", "jvm expired", *["jvm JavaSamples"] * 2, *["jvm KotlinSamples"] * 2]
        assert stand.stored("jvm ") == expected, stand.stored("jvm ")
        assert stand.locations() == ["jvm-location-1"], stand.locations()
        assert stand.stored("jvm ", "tea") == ["jvm bloomreach"]
        for name in ("FirstEvent", "FirstEventKt"):
            check_example(stand, [*self.java[:-1], name], environment)
        say("JVM: three modes, and the samples of Braze (Java, Kotlin) and Bloomreach (Kotlin)")

    def recorder(self, mode, environment, folder, number):
        # Without the checker of JNI, which makes a start twice as long.
        return [self.java[0], *self.java[2:], "record", mode, folder, number]


# MARK: Killing

MODES = {
    "signed_user": lambda stand: stand.stored("kill "),
    "access_token": lambda stand: [uuid for uuid in stand.locations() if uuid.startswith("kill ")],
    "bloomreach": lambda stand: stand.stored("kill ", "tea"),
}


def kill(client, stand, rounds, name, mode):
    """Kills a process that records, again and again, and sends what is left. `name` is the client's."""
    folder = stand.folder(f"{name}-{mode}")
    told = set()
    for number in range(rounds):
        # With a refresh token of its own each time: one that was exchanged is good no longer.
        environment = stand.environment(f"{name}-{mode}")
        process = subprocess.Popen(
            client.recorder(mode, environment, folder, str(number)), env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        # A different moment each time: after so many receipts and a part of a millisecond.
        wanted = 1 + random.randrange(60)
        for line in process.stdout:
            told.add(f"kill {number} {line.strip()}")
            wanted -= 1
            if wanted == 0:
                time.sleep(random.random() / 100)
                process.send_signal(signal.SIGKILL)
                break
        # What it was told before the kill and is still in the pipe counts too, but for a line that was cut short.
        told.update(f"kill {number} {line.strip()}" for line in process.stdout if line.endswith("\n"))
        errors = process.stderr.read()
        if process.wait() != -signal.SIGKILL:
            raise SystemExit(f"the process ended by itself\n{errors}")
    environment = stand.environment(f"{name}-{mode}")
    run(client.recorder(mode, environment, folder, "send"), environment)
    stored = MODES[mode](stand)
    lost = told - set(stored)
    assert not lost, f"{len(lost)} of {len(told)} events are lost: {sorted(lost)[:5]}"
    assert len(stored) == len(set(stored)), "an event is stored twice"
    say(f"{name}, {mode}: {rounds} times SIGKILL while it records: {len(told)} told to be stored, {len(stored)} there, none twice")


CLIENTS = {"c": C, "python": Python, "jvm": JVM}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--program", default=str(ROOT / ".build/debug/countersign-cli"))
    given = parser.parse_args()
    library = (given.library or BUILT.get(given.client, INSTALLABLE)).resolve()
    if not library.exists():
        raise SystemExit("clients: there is no library; run `make libcountersign`")
    folder = tempfile.mkdtemp(prefix="countersign-clients-")
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        # Under the names that linkers and loaders look for.
        names = f"{folder}/library"
        os.mkdir(names)
        for name in ("libcountersign.so", "libcountersign.so.0.1"):
            os.symlink(library, f"{names}/{name}")
        stand = Stand(given.program, names)
        stack.callback(stand.gateway.remove)
        client = CLIENTS[given.client](folder, names, stand.gateway.url)
        client.test(stand)
        for mode in [given.mode] if given.mode else MODES:
            kill(client, stand, given.rounds, given.client, mode)


if __name__ == "__main__":
    sys.exit(main())
