"""Tests the clients of libcountersign against a real gateway with real tokens, and kills processes that record events.

Each event that a client reported as stored must be stored once by the gateway. The default `--library` is the library
that `make libcountersign` builds; for C it is the library with symbols."""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.common import PROGRAM, ROOT, installed, output, until
from tools.gateway import Shop

HEADER = ROOT / "Sources/SDK/CCountersign/include"
BUILT = {"c": ROOT / ".build/static/release/libCountersignC.so"}
INSTALLABLE = ROOT / ".build/libcountersign/libcountersign.so"
ITEMS = {
    "inbox-message": {"id": "offer", "type": "html", "content": {"title": "Tea"}, "recipient": {"registered": "ada"}},
    "consent-category": {"id": "newsletter"},
    "in-app-message": {"id": "hello", "name": "Hello", "trigger": {"event_type": "session_start"}},
}


def say(text):
    print(f"clients: {text}", flush=True)


class Bench:
    """A gateway that requires user tokens, access tokens and customer tokens, and credentials of each kind."""

    def __init__(self, program, library):
        self.library = library
        self.gateway = gateway = Shop(program)
        gateway.run("key", "add", "shop", gateway.path("good", "public.pem"))
        gateway.run("enforcement", "set", "shop", "required", "--yes")
        # Bloomreach's clients send tokens only for the App Inbox, so their app accepts events without tokens.
        self.project_key = gateway.app("tea")
        gateway.run("project", "set", "tea", "--customer-tokens", "required")
        secret = gateway.folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(gateway.run("project", "key", "add", "tea", "backend").splitlines()[-1])
        for kind, content in ITEMS.items():
            (gateway.folder / kind).write_text(json.dumps(content))
            gateway.run("project", "put", "tea", kind, gateway.path(kind))
        self.ada, self.bob = gateway.token("ada"), gateway.token("bob")
        self.expired = gateway.token("ada", "good", "--now", str(int(time.time()) - 7200), "--lifetime", "60")
        self.customer = gateway.run("token", "create", "--customer-id", "registered=ada", "--secret-file", secret, "--kid", "backend")
        until("a gateway that requires tokens", lambda: gateway.send("ada", self.ada, name="bench") == 200
              and gateway.send("ada", name="bench") == 401 and self.has_inbox())

    def has_inbox(self):
        return "offer" in str(self.gateway.ask("POST", "/webxp/projects/tea/appinbox/fetch", {"customer_ids": {"registered": "ada"}},
                                               {"Authorization": f"Bearer {self.customer}"}))

    def folder(self, name):
        path = self.gateway.path("devices", name)
        os.makedirs(path, exist_ok=True)
        return path

    def environment(self, name):
        """The environment variables that a client's tests read."""
        return {
            **os.environ, "LD_LIBRARY_PATH": self.library, "COUNTERSIGN_LIBRARY": f"{self.library}/libcountersign.so",
            "STAND_ENDPOINT": self.gateway.url, "STAND_WRITE_KEY": self.gateway.write_key,
            "STAND_PROJECT": "tea", "STAND_PROJECT_KEY": self.project_key,
            "STAND_ADA": self.ada, "STAND_BOB": self.bob, "STAND_EXPIRED": self.expired, "STAND_CUSTOMER": self.customer,
            "STAND_REFRESH": self.gateway.run("session", "create", "shop", "--user", "ada"), "STAND_FOLDER": self.folder(name),
        }

    def events(self, app="shop", *only):
        return [json.loads(line) for line in self.gateway.run("event", "export", app, *only).splitlines()]

    def stored(self, prefix, app="shop", *only):
        """The names of stored events that begin with `prefix`, in the order of arrival."""
        names = [event.get("event") or event.get("name") or event.get("event_type") or "" for event in self.events(app, *only)]
        return [name for name in names if name.startswith(prefix)]

    def locations(self):
        return [event["location"]["uuid"] for event in self.events() if "location" in event]

    def expect(self, client, names, locations):
        """Checks that exactly these events of a client's tests are stored."""
        assert self.stored(f"{client} ") == names, self.stored(f"{client} ")
        assert self.locations() == [f"{client}-location-{number + 1}" for number in range(locations)], self.locations()
        assert self.stored(f"{client} ", "tea") == [f"{client} bloomreach"]


def example(name, folder, url):
    """Copies an example, with this gateway's address. Fails if docs/guides/python-and-c.md lacks it, except in C."""
    text = (ROOT / "Examples" / name).read_text()
    assert name.endswith(".c") or text in (ROOT / "docs/guides/python-and-c.md").read_text(), f"docs/guides/python-and-c.md does not contain {name}"
    assert "http://127.0.0.1:8787" in text, name
    copy = Path(folder) / Path(name).name
    copy.write_text(text.replace("http://127.0.0.1:8787", url))
    return copy


def check_example(bench, command, environment):
    """Runs an example with an empty queue. Its event must be stored with the verdict `verified`."""
    verified = ("Order Completed", "shop", "--verdict", "verified")
    before = len(bench.stored(*verified))
    with tempfile.TemporaryDirectory() as home:
        output(*command, bench.gateway.write_key, bench.gateway.token("user-1"), env={**environment, "XDG_DATA_HOME": home})
    assert len(bench.stored(*verified)) == before + 1, command


class C:
    """The driver in C, compiled with the address sanitizer and its leak checker."""

    def __init__(self, folder, library, url):
        self.folder = folder
        driver, sample = ROOT / "Tests/Clients/driver.c", example("C/first_event.c", folder, url)
        sanitized = ["-fsanitize=address,undefined"]
        for name, source, flags in [("driver", driver, sanitized), ("first", sample, sanitized), ("plain", driver, [])]:
            output("cc", "-g", "-Wall", "-Wextra", "-Werror", *flags, "-I", HEADER, source, "-o", f"{folder}/{name}",
                   "-L", library, "-lcountersign", "-lpthread")

    def test(self, bench):
        environment = {**bench.environment("c"), "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
                       "LSAN_OPTIONS": f"suppressions={ROOT}/Tests/Clients/lsan.supp:print_suppressions=0"}
        version = output(f"{self.folder}/driver", *(environment[f"STAND_{name}"] for name in (
            "FOLDER", "ENDPOINT", "WRITE_KEY", "PROJECT", "PROJECT_KEY", "ADA", "BOB", "REFRESH", "CUSTOMER")), env=environment)
        bench.expect("c", ["c first", "c second", "c screen", "c last", "c unanswered"], locations=2)
        check_example(bench, [f"{self.folder}/first"], environment)
        say(f"C: version {version}; three modes and the example pass, without errors or leaks of memory")
        # The scenarios need /proc of Linux, which shows whether another process is idle.
        if os.path.exists("/proc/self/task"):
            scenarios = output(sys.executable, "-B", ROOT / "Tests/Clients/conformance", "--library", environment["COUNTERSIGN_LIBRARY"])
            say(scenarios.splitlines()[0].rstrip(":"))

    def recorder(self, mode, environment, folder, number):
        endpoint = environment["STAND_ENDPOINT"]
        configuration = json.dumps({"dataDirectory": folder, **{
            "signed_user": {"endpoint": endpoint, "writeKey": environment["STAND_WRITE_KEY"]},
            "access_token": {
                "http": {"url": f"{endpoint}/api/locations", "batchSync": True},
                "authorization": {"refreshUrl": f"{endpoint}/api/refresh_token", "refreshToken": environment["STAND_REFRESH"],
                                  "refreshPayload": {"refresh_token": "{refreshToken}"}}},
            "bloomreach": {"projectToken": environment["STAND_PROJECT"], "authorizationToken": environment["STAND_PROJECT_KEY"],
                           "baseUrl": endpoint},
        }[mode]})
        return [f"{self.folder}/plain", *(["send", mode, configuration] if number == "send" else ["record", mode, configuration, number])]


class Python:
    """The Python package, installed into a new virtual environment."""

    def __init__(self, folder, library, url):
        output(sys.executable, "-m", "venv", f"{folder}/venv")
        self.python, self.tests = f"{folder}/venv/bin/python", ROOT / "Clients/python/tests"
        self.example, self.sample = example("Python/first_event.py", folder, url), Path(folder) / "sample.py"
        sample = "import sys\n" + (ROOT / "Clients/python/README.md").read_text().split("```python\n")[1].split("```")[0]
        for old, new in (("https://events.example", url), ('"wk_…"', "sys.argv[1]"), ("sign_for(request.user_id)", "sys.argv[2]")):
            assert old in sample, f"the README's sample does not contain {old}"
            sample = sample.replace(old, new)
        self.sample.write_text(sample)
        # Builds a copy, because building writes files into the folder.
        shutil.copytree(ROOT / "Clients/python", f"{folder}/python")
        output(self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{folder}/python")

    def test(self, bench):
        done = subprocess.run([self.python, "-B", "-W", "error", self.tests / "test_countersign.py"], cwd="/",
                              env=bench.environment("python"), capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        stored = sorted(bench.stored("python "))
        assert stored == ["python expired", "python first", *(f"python left {number}" for number in range(3))], stored
        assert bench.locations() == ["python-location-1"], bench.locations()
        assert bench.stored("python ", "tea") == ["python bloomreach"]
        for path in (self.example, self.sample):
            check_example(bench, [self.python, "-B", path], bench.environment("python"))
        say(f"Python: {done.stderr.split('Ran ')[1].split(' in ')[0]} in three modes pass in a new virtual environment")

    def recorder(self, mode, environment, folder, number):
        return [self.python, "-B", self.tests / "record.py", folder, mode, number]


class JVM:
    """The jar with its JNI library, and two vendors' samples in Java and Kotlin."""

    def __init__(self, folder, library, url):
        self.folder = f"{folder}/jvm"
        output(ROOT / "Clients/jvm/build.sh", library, HEADER, self.folder)
        tests = ROOT / "Clients/jvm/src/test"
        java = [*sorted(tests.rglob("*.java")), example("Java/FirstEvent.java", folder, url)]
        kotlin = [*sorted(tests.rglob("*.kt")), example("Kotlin/FirstEvent.kt", folder, url)]
        jar, self.compiled = f"{self.folder}/countersign.jar", f"{self.folder}/tests"
        path = f"{jar}:{self.compiled}:/usr/share/java/kotlin-stdlib.jar"
        # Kotlin is compiled with the Java files, because they refer to each other. Kotlin 1.3 needs -Xnew-inference.
        output(installed("kotlinc", "kotlin"), "-Xnew-inference", "-nowarn", "-cp", jar, *kotlin, *java, "-d", self.compiled)
        output("javac", "--release", "11", "-cp", path, "-d", self.compiled, *java)
        self.java = ["java", "-cp", path, f"-Dcountersign.library={self.folder}/libcountersign_jni.so"]

    def test(self, bench):
        # Braze's documentation puts the API key and the endpoint into braze.xml.
        Path(self.compiled, "braze.xml").write_text(f"""<?xml version="1.0" encoding="utf-8"?>
<resources>
  <string name="com_braze_api_key">{bench.gateway.write_key}</string>
  <string name="com_braze_custom_endpoint">{bench.gateway.url}</string>
</resources>""")
        environment = {**bench.environment("jvm"), "XDG_DATA_HOME": bench.folder("jvm-home"),
                       "STAND_NEW_USER": bench.gateway.token("NEW-USER-ID")}
        checked = [self.java[0], "-Xcheck:jni", *self.java[1:]]
        said = output(*checked, "Tests", env=environment)
        # -Xcheck:jni would print warnings to the standard output.
        assert len(said.splitlines()) == 1, said
        bench.expect("jvm", ["jvm first", "jvm second", *["jvm store"] * 4, "jvm expired", *["jvm JavaSamples"] * 2, *["jvm KotlinSamples"] * 2], locations=1)
        for name in ("FirstEvent", "FirstEventKt"):
            check_example(bench, [*checked, name], environment)
        say("JVM: three modes, and the samples of Braze (Java, Kotlin) and Bloomreach (Kotlin) pass")

    def recorder(self, mode, environment, folder, number):
        return [*self.java, "Tests", "record", mode, folder, number]


MODES = {
    "signed_user": lambda bench: bench.stored("kill "),
    "access_token": lambda bench: [uuid for uuid in bench.locations() if uuid.startswith("kill ")],
    "bloomreach": lambda bench: bench.stored("kill ", "tea"),
}


def kill(client, bench, rounds, name, mode):
    """Kills `rounds` recording processes on one queue, sends remaining events, and checks that all are stored once."""
    folder, told = bench.folder(f"{name}-{mode}"), set()
    for number in range(rounds):
        # Each process gets a new refresh token, because an earlier process may have used the previous one.
        environment = bench.environment(f"{name}-{mode}")
        process = subprocess.Popen(client.recorder(mode, environment, folder, str(number)), env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        wanted = 1 + random.randrange(60)
        for line in process.stdout:
            told.add(f"kill {number} {line.strip()}")
            wanted -= 1
            if wanted == 0:
                # Up to 10 ms, so that the kill may come at any moment of a recording.
                time.sleep(random.random() / 100)
                process.send_signal(signal.SIGKILL)
                break
        # Complete lines that are still in the pipe are reported events too.
        told.update(f"kill {number} {line.strip()}" for line in process.stdout if line.endswith("\n"))
        errors = process.stderr.read()
        if process.wait() != -signal.SIGKILL:
            raise SystemExit(f"the process ended before it was killed\n{errors}")
    environment = bench.environment(f"{name}-{mode}")
    output(*client.recorder(mode, environment, folder, "send"), env=environment)
    stored = MODES[mode](bench)
    lost = told - set(stored)
    assert not lost, f"{len(lost)} of {len(told)} events are lost: {sorted(lost)[:5]}"
    assert len(stored) == len(set(stored)), "an event is stored twice"
    say(f"{name}, {mode}: killed {rounds} times while recording: {len(told)} events reported as stored, {len(stored)} stored, each once")


CLIENTS = {"c": C, "python": Python, "jvm": JVM}


def main(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m tools clients", description=__doc__)
    parser.add_argument("clients", nargs="+", choices=CLIENTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--kills", action="store_true", help="skip the clients' tests, and only kill processes")
    parser.add_argument("--countersign", default=str(PROGRAM), type=os.path.abspath)
    given = parser.parse_args(arguments)
    for name in given.clients:
        library = (given.library or BUILT.get(name, INSTALLABLE)).resolve()
        if not library.exists():
            raise SystemExit("clients: there is no library; run `make libcountersign`")
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="countersign-clients-"))
            # Links to the library, with the names that the linker and the loader use.
            names = Path(folder, "library")
            names.mkdir()
            for file in ("libcountersign.so", "libcountersign.so.0.1"):
                (names / file).symlink_to(library)
            bench = Bench(given.countersign, str(names))
            stack.callback(bench.gateway.remove)
            client = CLIENTS[name](folder, str(names), bench.gateway.url)
            if not given.kills:
                client.test(bench)
            for mode in MODES:
                kill(client, bench, given.rounds, name, mode)
