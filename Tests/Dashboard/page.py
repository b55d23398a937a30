"""A browser window for the dashboard's tests: signs in, opens screens, and records script errors and policy violations."""
from contextlib import contextmanager

from playwright.sync_api import expect

PASSWORD = "a long sentence for the test"
# Long, because the page polls every 5 to 10 seconds, and Chromium starts slowly on a busy machine.
expect.set_options(timeout=60_000)
MARKUP = '<script>window.hacked=1</script><img src=x onerror="window.hacked=1">'


def say(text):
    print(f"browser: {text}", flush=True)


class Visitor:
    """A browser window. `faults` lists script errors, violations of the content security policy, and foreign requests."""

    windows = []

    def __init__(self, browser, url, storage=None, width=1280, scheme="light", zone=None, locale="en-GB"):
        self.url = url
        self.faults = []
        self.context = browser.new_context(storage_state=storage, color_scheme=scheme, reduced_motion="reduce", timezone_id=zone, locale=locale,
                                           viewport={"width": width, "height": 800})
        self.context.set_default_timeout(60_000)
        # Collects the violations of the content security policy on all pages of the context.
        self.context.expose_function("breach", lambda text: self.faults.append(f"policy: {text}"))
        self.context.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            " event => window.breach(event.violatedDirective + ' ' + event.blockedURI))")
        self.context.on("request", self.request)
        # Failed requests, for the report of a failed check. Some checks cause them on purpose, so they are not faults.
        self.unanswered = []
        self.context.on("response", lambda answer: answer.status >= 500 and self.unanswered.append(f"{answer.status} {answer.url}"))
        self.context.on("requestfailed", lambda request: self.unanswered.append(f"{request.failure} {request.url}"))
        self.context.on("page", self.watch)
        self.page = self.context.new_page()
        Visitor.windows.append(self)

    def request(self, request):
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.faults.append(f"request to another origin: {request.url}")

    def watch(self, page):
        # Accepts the beforeunload dialog, which Chromium shows before unsaved input is lost.
        page.on("dialog", lambda question: question.accept())
        page.on("pageerror", lambda error: self.faults.append(f"script error: {error}"))
        page.on("console", self.console)

    def console(self, message):
        # Chromium logs each 4xx response and each lost connection as an error; checks of the API cover those.
        if message.type == "error" and "Failed to load resource" not in message.text and "net::ERR" not in message.text:
            self.faults.append(f"console: {message.text}")

    def describe(self):
        """Returns the window's text, failed requests and faults, for the report of a failed check."""
        shown = self.page.locator("body").inner_text(timeout=2_000)
        return f"{self.page.url}\n{shown[:4_000]}\nrequests that failed: {self.unanswered[-20:]}\nfaults: {self.faults}"

    def check(self):
        assert not self.faults, self.faults
        assert not self.page.evaluate("window.hacked"), f"stored markup ran on {self.page.url}"

    def open(self, route):
        """Opens a screen and waits until it is loaded. Discards unsaved input."""
        self.page.evaluate("document.querySelectorAll('form[data-dirty]').forEach(form => form.removeAttribute('data-dirty'))")
        address = f"{self.url}/admin/#/{route}"
        if self.page.url == address:
            self.page.reload()
            self.settled()
        else:
            with self.renewed():
                self.page.goto(address)

    @contextmanager
    def renewed(self):
        """Waits until the body of the `with` statement has replaced the screen; the previous screen stays for a moment."""
        self.page.evaluate("document.querySelector('.screen')?.setAttribute('data-before', '')")
        yield
        expect(self.page.locator("[data-before]")).to_have_count(0)
        self.settled()

    def settled(self):
        expect(self.page.locator("h1")).to_be_visible()
        expect(self.page.locator(".skeleton")).to_have_count(0, timeout=10_000)

    def button(self, name, **more):
        return self.page.get_by_role("button", name=name, **more)

    def press(self, button):
        """Clicks a button that sends a request other than GET. Returns the status of the response."""
        with self.page.expect_response(lambda answer: answer.request.method != "GET") as answer:
            button.click()
        return answer.value.status

    def told(self, text):
        """Waits for a toast with this text."""
        expect(self.page.locator(".toast")).to_contain_text(text)

    @property
    def dialog(self):
        return self.page.get_by_role("dialog")

    def sign_in(self, name, password=PASSWORD):
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password", exact=True).fill(password)
        self.button("Sign in").click()

    def leave(self):
        self.check()
        self.context.close()
        Visitor.windows.remove(self)
