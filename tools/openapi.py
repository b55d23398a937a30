"""Checks the gateway's OpenAPI documents, and the running gateway against them, with openapi-spec-validator and Schemathesis."""

import json
import re
import subprocess
import sys
from pathlib import Path

from .common import output, parse
from .gateway import Gateway

BIN = Path(sys.executable).parent
# Excluded checks: positive_data_acceptance, because the schema does not express which members an event needs together;
# negative_data_rejection, because an invalid event is rejected in a 200 response while other events are stored;
# ignored_auth, because an app whose enforcement is not Required accepts requests without a token.
OF_EVENTS = ("--exclude-checks", "positive_data_acceptance,negative_data_rejection,ignored_auth")
PROJECTS = "^/(track|data|webxp|wxstatic|campaigns)/"
# If-Match is checked before rules that the schema lacks: 412 if it is wrong, 428 if it is missing (RFC 6585, 3).
STATUSES = """
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "412", "415", "422", "428", "429", "5xx"]
[checks.missing_required_header]
expected-statuses = ["400", "401", "403", "406", "415", "422", "428"]
"""


class Tester:
    def __init__(self, gateway, examples):
        self.gateway, self.examples = gateway, examples

    def run(self, document, *more, base="", settings=()):
        """Runs Schemathesis. Returns its output if it finds a problem, else None."""
        done = subprocess.run([BIN / "st", "--no-color", *settings, "run", document, "--url", self.gateway.url + base, "--phases",
                               "examples,coverage,fuzzing", "--max-examples", str(self.examples), "--request-timeout", "20",
                               "--suppress-health-check", "all", "--warnings", "off", *more], capture_output=True, text=True)
        return done.stdout + done.stderr if done.returncode else None

    def good(self, *arguments, **more):
        if said := self.run(*arguments, **more):
            raise SystemExit(f"openapi: {said}")

    def succeeded(self, least, route=""):
        """Exits if fewer than `least` endpoints have answered a request with 2xx."""
        served = len(re.findall(rf'^countersign_requests_total.*{route}.*status="2xx"', self.gateway.metrics(), re.M))
        if served < least:
            raise SystemExit(f"openapi: only {served} endpoints ever succeeded")


def document(gateway, path, name, change=lambda text: text, **more):
    status, found = gateway.ask("GET", path, **more)
    assert status == 200, found
    file = gateway.folder / name
    file.write_text(json.dumps(found))
    output(BIN / "openapi-spec-validator", file)
    file.write_text(change(json.dumps(found)))
    return file


def existing(text):
    """Limits the parameters `app` and `kind` to existing values, because other values only cause errors."""
    found = json.loads(text)
    for parameter in (one for path in found["paths"].values() for operation in path.values() for one in operation.get("parameters", [])):
        if parameter["name"] == "app" and parameter["in"] == "path":
            parameter["schema"] = {"enum": ["shop"]}
        if parameter["name"] == "kind":
            parameter["schema"] = {"enum": ["in-app-message", "consent-category", "inbox-message"]}
    return json.dumps(found)


def main(arguments):
    options = parse(arguments, "openapi", __doc__, examples=30)
    with Gateway(options.countersign, level="error") as gateway:
        key, bearer = gateway.app(enforcement="optional"), gateway.bearer("openapi")
        gateway.start()
        tester = Tester(gateway, options.examples)
        file = document(gateway, "/openapi.json", "openapi.json")
        # Once with an app's write key, once without credentials.
        tester.good(file, *OF_EVENTS, "-H", f"X-Write-Key: {key}", "-H", f"X-Braze-Api-Key: {key}", "--exclude-path-regex", PROJECTS)
        tester.good(file, *OF_EVENTS)
        # Paths of projects: the project must exist for a request to succeed.
        file.write_text(file.read_text().replace(r'"pattern": "^[A-Za-z0-9_-]{1,64}$"', '"enum": ["shop"]'))
        tester.good(file, *OF_EVENTS, "-H", f"Authorization: Token {key}", "--include-path-regex", PROJECTS)
        tester.succeeded(20)
        # Schemathesis must fail for a document that promises another response.
        text = file.read_text()
        wrong = text.replace('"accepted", "duplicates", "rejected"', '"accepted", "never-there"')
        assert wrong != text
        file.write_text(wrong)
        if not tester.run(file, *OF_EVENTS, "-H", f"X-Write-Key: {key}", "--include-path", "/v1/batch"):
            raise SystemExit("openapi: Schemathesis accepts a wrong document")
        # This run changes the app, so it is last. Omits the endless /live, and allow_header_conformance, because
        # /keys/import also matches /keys/{id}.
        file = document(gateway, "/admin/api/openapi.json", "admin.json", existing, headers=bearer)
        settings = gateway.folder / "schemathesis.toml"
        settings.write_text(STATUSES)
        tester.good(file, "--exclude-path", "/live", "--exclude-checks", "positive_data_acceptance,allow_header_conformance",
                    "-H", f"Authorization: {bearer['Authorization']}", base="/admin/api", settings=("--config-file", settings))
        tester.succeeded(10, "/admin/api/")
        if not gateway.is_running or '"status":5' in gateway.log.read_text():
            raise SystemExit(f"openapi: the gateway failed:\n{gateway.log.read_text()[-2000:]}")
    print("openapi: the documents are valid, and the gateway conforms to them")
