"""A site that serves the client, and pages of the site in Chromium."""
import contextlib
import functools
import http.server
import json
import os
import threading
import urllib.parse
from pathlib import Path

from tools.common import ROOT

WEB = Path(os.environ.get("PROVE_WEB", ROOT / "Clients/web"))
PAGE = "/test/pages/page.html"


def say(text):
    print(f"web: {text}", flush=True)


class Site:
    """Serves the client, pages and tokens. Its content security policy allows only the site and calls to the gateway.

    `documents` maps paths to texts, `actions` to functions that take the query's members and return a JSON value.
    """

    def __init__(self, endpoint, token):
        documents, actions = self.documents, self.actions = {}, {}
        # Another origin that pages may load scripts from.
        self.scripts_from = ""
        site = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            extensions_map = {".html": "text/html", ".js": "text/javascript"}

            def do_GET(self):
                address = urllib.parse.urlsplit(self.path)
                if address.path == "/token":
                    text = json.dumps({"token": token(urllib.parse.parse_qs(address.query)["user"][0])})
                elif address.path in documents:
                    text = documents[address.path]
                elif address.path in actions:
                    values = dict(urllib.parse.parse_qsl(address.query))
                    text = json.dumps(actions[address.path](**values))
                else:
                    return super().do_GET()
                self.send_response(200)
                self.send_header("Content-Type", self.guess_type(address.path))
                self.end_headers()
                # The page may have been killed.
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(text.encode())

            def end_headers(self):
                self.send_header("Content-Security-Policy", (
                    f"default-src 'none'; script-src 'self' {site.scripts_from}; connect-src 'self' {endpoint};"
                    " frame-ancestors 'none'; base-uri 'none'"))
                self.send_header("Cache-Control", "no-store")
                super().end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=WEB))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Visit:
    """A browser profile with tabs of the site. `told` has the receipts that its pages got."""

    def __init__(self, browser, stand, script=None, context=None):
        self.site, self.gateway, self.endpoint = stand.site, stand.gateway, stand.wire.url
        self.context = context or browser.new_context()
        self.context.set_default_timeout(30_000)
        self.told, self.asked, self.faults, self.requests = [], [], [], []
        self.context.expose_function("told", lambda receipt: self.told.append(receipt))
        self.context.expose_function("provide", self.provide)
        self.context.expose_function("breach", lambda text: self.faults.append(f"policy: {text}"))
        self.context.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            " event => window.breach(event.violatedDirective + ' ' + event.blockedURI))")
        if script:
            self.context.add_init_script(script)
        self.context.on("request", lambda request: request.method == "POST" and self.requests.append(request))
        self.context.on("page", lambda page: page.on(
            "pageerror", lambda error: self.faults.append(f"script error: {error}")))

    def provide(self, request):
        self.asked.append(request)
        return self.gateway.token(request["userId"])

    def address(self, **query):
        query = {"endpoint": self.endpoint, "key": self.gateway.write_key, **query}
        return f"{self.site.url}{PAGE}?{urllib.parse.urlencode(query)}"

    def open(self, **query):
        page = self.context.new_page()
        page.goto(self.address(**query))
        self.ready(page)
        return page

    @staticmethod
    def ready(page):
        page.wait_for_function("window.ready", polling=20)

    def check(self):
        assert not self.faults, self.faults
        # The client sets no cookies.
        assert not self.context.cookies(), self.context.cookies()
        self.context.close()


def run(page, script, argument=None):
    return page.evaluate(script, argument)


def snapshot(page):
    return run(page, "client.snapshot()")


def flush(page):
    return run(page, "client.flush()")
