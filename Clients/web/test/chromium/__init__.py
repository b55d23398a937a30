"""Tests the browser client (Clients/web) in Chromium against a real gateway with real tokens.

Most scenarios compare the gateway's database with the page: an event reported as stored must be in the database
once. The first scenario that fails ends the run with exit code 1. `--rounds` is the number of times that
recording tabs are killed with SIGKILL, for each entry of `WAYS`.
"""
import argparse
import json
import os
import shutil
import signal
import tempfile
import threading
import time
import urllib.request

from playwright.sync_api import Error, sync_playwright

from tools.common import PROGRAM, ROOT, chromium
from . import conformance as scenarios
from .demo import Demo
from .pages import WEB, Visit, flush, run, say, snapshot
from .stand import Stand, until

NO_LOCKS = "Object.defineProperty(Navigator.prototype, 'locks', { value: undefined })"


def signed_event(browser, stand):
    visit = Visit(browser, stand)
    page = visit.open()
    run(page, "token => client.identify('ada', token, { plan: 'free' })", stand.gateway.token("ada"))
    visit.told.append(run(page, "client.track('first', { total: 42.5 })"))
    # A lone surrogate would make the whole request unreadable.
    visit.told.append(run(page, r"client.track('first cut', { text: '\ud83d' })"))
    result = flush(page)
    assert result["isComplete"], result
    assert stand.arrived(visit.told, "first") == 2
    event, cut = stand.events("first")
    assert cut["properties"] == {"text": "\ufffd"}, cut
    assert event["userId"] == "ada" and event["properties"] == {"total": 42.5}, event
    verified = stand.gateway.run("event", "export", "shop", "--verdict", "verified").splitlines()
    assert len(verified) == 3, verified
    visit.check()
    say("an event of a signed user arrives verified, under a policy without inline script, eval or another origin")


def reload(browser, stand):
    visit = Visit(browser, stand)
    page = visit.open()
    stand.wire.cut()
    run(page, "token => client.changeUser('ada', token)", stand.gateway.token("ada"))
    run(page, "record('reload', 30)")
    page.reload()
    visit.ready(page)
    assert run(page, "client.snapshot().then((s) => [s.queued, client.userId])") == [30, "ada"]
    stand.wire.mend()
    until(lambda: len(stand.stored("reload")) == 30, page=page)
    assert stand.arrived(visit.told, "reload") == 30
    visit.check()
    say("30 events recorded while the gateway is unreachable survive a reload, with user and token, and are sent when it is reachable")


# The kinds of pages in `kill`: the query of the URL, and a script that runs before the page's scripts.
WAYS = {
    "under a token": ({}, None),
    "under a provider's tokens": ({"provider": 1}, None),
    "without Web Locks": ({}, NO_LOCKS),
}


def kill(browser, stand, rounds):
    """The renderers of two tabs are killed with SIGKILL while they record and send."""
    for way, (query, script) in WAYS.items():
        visit = Visit(browser, stand, script=script)
        for number in range(rounds):
            pages = [visit.open(**query), visit.open(**query)]
            token = None if "provider" in query or number % 10 else stand.gateway.token("ada")
            before = len(visit.told)
            for tab, page in enumerate(pages):
                run(page, "token => client.changeUser('ada', token)", token)
                run(page, "name => void record(name, 1e9)", f"kill {way} {number} {tab}")
            # The number of receipts before the kill varies by round.
            until(lambda: len(visit.told) >= before + 3 + 7 * (number % 9), page=pages[0])
            kill_tabs(browser)
            for page in pages:
                page.close()
        page = visit.open(**query)
        result = flush(page)
        assert result["isComplete"], result
        count = stand.arrived(visit.told, f"kill {way}")
        counts = snapshot(page)
        assert counts["queued"] == 0 and counts["quarantined"] == 0, counts
        visit.check()
        say(f"{rounds} times SIGKILL to two tabs that record {way}: {len(visit.told)} reported as stored, {count} in the database,"
            f" each once; {counts['duplicates']} were sent again and dropped by their id")


def kill_tabs(browser):
    session = browser.new_browser_cdp_session()
    for process in session.send("SystemInfo.getProcessInfo")["processInfo"]:
        if process["type"] == "renderer":
            os.kill(process["id"], signal.SIGKILL)
    session.detach()


def story(browser, stand):
    """All faults of the demo page (`make web DEMO=1`) in one run."""
    visit = Visit(browser, stand)
    demo = Demo(stand)

    def record_more(events=25):
        seen = len(demo.told)
        until(lambda: len(demo.told) >= seen + events, page=page)

    page = visit.context.new_page()
    page.goto(demo.address)
    page.click("#record")
    record_more()
    page.click("#cut")
    record_more()
    page.click("#expire")
    record_more()
    kill_tabs(browser)
    page.close()
    page = visit.context.new_page()
    page.goto(demo.address)
    page.click("#record")
    record_more()
    page.click("#mend")
    until(lambda: "EXPIRED" in page.inner_text("#state"), page=page)
    page.click("#renew")
    page.click("#stop")
    until(lambda: "each exactly once" in page.inner_text("#state"), 60, page=page)
    state = demo.state()
    assert state["lost"] == state["twice"] == 0 and state["stored"] >= 100, state
    visit.check()
    say(f"a page records, loses its network, gets expired tokens, is killed and reopened: {state['stored']} events, each exactly once")


def conformance(browser, stand):
    """The scenarios of Conformance, with IndexedDB as storage."""
    found = scenarios.outcomes(browser, stand.site)
    failed = [outcome for outcome in found if outcome["failure"]]
    assert found and not failed, failed
    say(f"{len(found)} scenarios of Conformance pass over IndexedDB")


def crash(playwright, browser, stand):
    """The whole browser is killed. Its profile stays on disk."""
    profile = tempfile.mkdtemp(prefix="countersign-web-")
    told = []
    rounds = 5
    try:
        for number in range(rounds + 1):
            context = playwright.chromium.launch_persistent_context(profile, **chromium())
            visit = Visit(None, stand, context=context)
            page = visit.open()
            if number == rounds:
                result = flush(page)
                assert result["isComplete"], result
                context.close()
                break
            run(page, "token => client.changeUser('ada', token)", stand.gateway.token("ada"))
            stand.wire.cut()
            run(page, "number => void record(`crash ${number}`, 1e9)", number)
            until(lambda: len(visit.told) >= 20, page=page)
            told += visit.told
            processes = children_with(profile)
            assert processes, "the browser's process was not found"
            for process in processes:
                os.kill(process, signal.SIGKILL)
            try:
                context.close()
            except Error:
                pass
            stand.wire.mend()
            release(profile)
        count = stand.arrived(told, "crash")
        say(f"{rounds} times SIGKILL to the whole browser: {len(told)} reported as stored, {count} in the database, each once")
    finally:
        stand.wire.mend()
        shutil.rmtree(profile, ignore_errors=True)


def children_with(profile):
    """Returns the main processes of the browser with this profile."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline") as file:
                    line = file.read()
            except OSError:
                continue
            if f"--user-data-dir={profile}" in line and "--type=" not in line:
                found.append(int(entry))
    return found


def release(profile):
    """Deletes the lock on the profile of a killed browser."""
    for name in ("SingletonLock", "SingletonCookie", "SingletonSocket"):
        if os.path.lexists(os.path.join(profile, name)):
            os.unlink(os.path.join(profile, name))


def tabs(browser, stand):
    visit = Visit(browser, stand)
    one, two = visit.open(provider=1), visit.open(provider=1)
    for page in (one, two):
        run(page, "client.changeUser('ada')")
    run(one, "void record('tabs one', 150)")
    run(two, "record('tabs two', 150)")
    until(lambda: len(visit.told) == 300, page=one)
    results = [flush(page) for page in (two, one)]
    assert all(result["isComplete"] for result in results), results
    assert stand.arrived(visit.told, "tabs") == 300
    counts = snapshot(one)
    assert counts["sent"] == 300 and counts["duplicates"] == 0, counts
    assert len(visit.asked) == 1, visit.asked
    senders = {request.frame.page for request in visit.requests}
    assert len(senders) == 1, "both tabs sent requests"
    # The other tab takes over when the sending tab is closed.
    first = senders.pop()
    other = two if first is one else one
    first.close()
    run(other, "record('tabs three', 25)")
    assert flush(other)["isComplete"]
    assert stand.arrived(visit.told, "tabs") == 325
    visit.check()
    say("two tabs record 300 events at once: one of them sends each event once and calls the provider once;"
        " after it is closed, the other tab sends")


def unlocked(browser, stand):
    """Pages without HTTPS have no Web Locks."""
    visit = Visit(browser, stand, script=NO_LOCKS)
    pages = [visit.open(), visit.open()]
    for page in pages:
        run(page, "token => client.changeUser('ada', token)", stand.gateway.token("ada"))
        run(page, "void record('unlocked', 100)")
    until(lambda: len(visit.told) == 200, page=pages[0])
    for page in pages:
        assert flush(page)["isComplete"]
    assert stand.arrived(visit.told, "unlocked") == 200
    visit.check()
    say("without Web Locks two tabs send 200 events, and none is stored twice")


def offline(browser, stand):
    visit = Visit(browser, stand)
    page = visit.open()
    run(page, "token => client.changeUser('ada', token)", stand.gateway.token("ada"))
    visit.context.set_offline(True)
    run(page, "record('offline', 40)")
    counts = snapshot(page)
    assert counts["queued"] == 40, counts
    assert "no_connection" in flush(page)["batches"][0]["code"]
    visit.context.set_offline(False)
    until(lambda: len(stand.stored("offline")) == 40, page=page)
    assert stand.arrived(visit.told, "offline") == 40
    visit.check()
    say("events recorded offline are sent when the network is back")


def clock(browser, stand):
    for days in (-1, 1):
        name = f"clock {days}"
        visit = Visit(browser, stand, script=f"""{{
            const [Real, shift] = [Date, {days} * 86_400_000];
            window.Date = class extends Real {{
                constructor(...given) {{ given.length ? super(...given) : super(Real.now() + shift); }}
                static now() {{ return Real.now() + shift; }}
            }};
        }}""")
        page = visit.open(provider=1)
        run(page, "client.changeUser('ada')")
        for number in range(3):
            run(page, "name => record(name, 5)", f"{name} {number}")
            result = flush(page)
            assert result["isComplete"], result
        assert stand.arrived(visit.told, name) == 15
        assert len(visit.asked) == 1, visit.asked
        visit.check()
    say("with a device clock one day behind or ahead all events are delivered, and the provider is called once")


def quota(browser, stand):
    visit = Visit(browser, stand)
    page = visit.context.new_page()
    tools = visit.context.new_cdp_session(page)
    tools.send("Storage.overrideQuotaForOrigin", {"origin": stand.site.url, "quotaSize": 500_000})
    page.goto(visit.address())
    visit.ready(page)
    stand.wire.cut()
    run(page, "token => client.changeUser('ada', token)", stand.gateway.token("ada"))
    while sum(receipt["stored"] == "memory" for receipt in visit.told) < 10:
        visit.told.append(run(page, "client.track('quota', { text: 'x'.repeat(20_000) })"))
    places = [receipt["stored"] for receipt in visit.told]
    on_disk = places.count("disk")
    assert on_disk > 5, places
    counts = snapshot(page)
    assert counts["storage"] == "memory" and "Quota" in counts["storageProblem"], counts
    assert counts["queued"] == len(places), counts
    stand.wire.mend()
    until(lambda: snapshot(page)["queued"] == 0, page=page)
    stand.arrived(visit.told, "quota")
    assert snapshot(page)["duplicates"] == 0
    tools.send("Storage.overrideQuotaForOrigin", {"origin": stand.site.url})
    until(lambda: run(page, "client.track('room again')")["stored"] == "disk", page=page)
    assert flush(page)["isComplete"]
    assert snapshot(page)["storage"] == "disk"
    visit.check()
    say(f"with a full quota ({on_disk} events on disk) 10 events are kept in memory and all are delivered; later the disk is used again")


# Lets a page close its connection to the database, and suppress the events of transactions.
BAD_DATABASE = """{
    const { transaction } = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (...given) {
        if (window.loses) this.close();
        window.loses = false;
        const made = transaction.apply(this, given);
        if (window.isStuck) for (const name of ['oncomplete', 'onabort']) Object.defineProperty(made, name, { set() {} });
        return made;
    };
}"""


def lost(browser, stand):
    """Safari closes connections to the database without an event."""
    visit = Visit(browser, stand, script=BAD_DATABASE)
    page = visit.open()
    run(page, "token => client.changeUser('ada', token)", stand.gateway.token("ada"))
    for number in range(3):
        run(page, "number => record(`lost ${number}`, 5)", number)
        run(page, "window.loses = true")
    assert {receipt["stored"] for receipt in visit.told} == {"disk"}, visit.told
    assert flush(page)["isComplete"]
    assert stand.arrived(visit.told, "lost") == 15
    visit.check()
    say("a connection to the database that the browser has closed is opened again: 15 events on disk, and all arrive")


def stuck(browser, stand):
    """In web apps on iOS, transactions may never end."""
    visit = Visit(browser, stand, script=BAD_DATABASE)
    page = visit.open()
    run(page, "token => client.changeUser('ada', token)", stand.gateway.token("ada"))
    run(page, "record('stuck before', 5)")
    assert flush(page)["isComplete"]
    run(page, "window.isStuck = true")
    run(page, "record('stuck', 5)")
    assert [receipt["stored"] for receipt in visit.told] == ["disk"] * 5 + ["memory"] * 5, visit.told
    flush(page)
    counts = snapshot(page)
    assert counts["storage"] == "memory" and "timed out" in counts["storageProblem"], counts
    assert stand.arrived(visit.told, "stuck") == 10
    run(page, "client.logOut()")
    run(page, "client.close()")
    page.reload()
    visit.ready(page)
    assert run(page, "client.snapshot().then(() => client.userId)") is None
    assert run(page, "localStorage.length") == 0
    visit.check()
    say("if transactions never end, all calls return, events are kept in memory and delivered, and a log-out is not lost")


def blocked(playwright, browser, stand):
    """The user's settings do not allow sites to store data."""
    profile = tempfile.mkdtemp(prefix="countersign-web-")
    os.mkdir(os.path.join(profile, "Default"))
    with open(os.path.join(profile, "Default", "Preferences"), "w") as file:
        json.dump({"profile": {"default_content_setting_values": {"cookies": 2}}}, file)
    context = playwright.chromium.launch_persistent_context(profile, **chromium())
    try:
        visit = Visit(None, stand, context=context)
        page = visit.open()
        assert run(page, """new Promise((resolve) => {
            try {
                const request = indexedDB.open('probe');
                request.onerror = () => resolve('blocked');
                request.onsuccess = () => resolve('open');
            } catch { resolve('blocked'); }
        })""") == "blocked", "the profile does not block storage"
        run(page, "token => client.changeUser('ada', token)", stand.gateway.token("ada"))
        run(page, "record('blocked', 25)")
        counts = snapshot(page)
        assert counts["storage"] == "memory" and counts["storageProblem"], counts
        assert {receipt["stored"] for receipt in visit.told} == {"memory"}
        assert flush(page)["isComplete"]
        assert stand.arrived(visit.told, "blocked") == 25
        visit.check()
    finally:
        shutil.rmtree(profile, ignore_errors=True)
    say(f"if storage is blocked, events are kept in memory, and the snapshot has the problem: {counts['storageProblem']}")


def expired(browser, stand):
    visit = Visit(browser, stand)
    page = visit.open()
    run(page, "token => client.changeUser('ada', token)",
        stand.gateway.token("ada", "good", "--lifetime", "60", "--now", str(int(time.time()) - 3600)))
    run(page, "record('expired', 5)")
    result = flush(page)
    assert [batch["code"] for batch in result["batches"]] == ["EXPIRED"], result
    assert run(page, "failures") == ["EXPIRED"]
    counts = snapshot(page)
    assert counts["parked"][0]["reason"] == "EXPIRED" and counts["queued"] == 5, counts
    page.goto(visit.address(provider=1))
    visit.ready(page)
    until(lambda: len(stand.stored("expired")) == 5, page=page)
    assert [request["reason"] for request in visit.asked] == ["expired"], visit.asked
    assert stand.arrived(visit.told, "expired") == 5
    visit.check()
    say("an expired token parks its user's events and is reported; a token from the provider sends them")


def users(browser, stand):
    visit = Visit(browser, stand)
    page = visit.open()
    visit.told.append(run(page, "client.track('users nobody')"))
    for user in ("ada", "bob"):
        run(page, "([user, token]) => client.changeUser(user, token)", [user, stand.gateway.token(user)])
        run(page, "name => record(name, 3)", f"users {user}")
    result = run(page, "client.logOut()")
    assert result["isComplete"], result
    visit.told.append(run(page, "client.track('users nobody again')"))
    assert flush(page)["isComplete"]
    assert stand.arrived(visit.told, "users") == 8
    for event in stand.events("users"):
        assert event.get("userId", "nobody") == event["event"].split()[1], event
    assert run(page, "indexedDB.databases().then((all) => all.length)") == 1
    run(page, "client.wipe()")
    assert snapshot(page)["queued"] == 0 and run(page, "client.userId") is None
    visit.check()
    say("each event arrives under the user it was recorded for, before, between and after log-ins")


def leave(browser, stand):
    """Pages are left or closed before the client has sent their events."""
    visit = Visit(browser, stand)
    page = visit.open()
    run(page, "token => client.changeUser('ada', token)", stand.gateway.token("ada"))
    assert flush(page)["isComplete"]
    run(page, "record('leave', 5)")
    page.goto("about:blank")
    until(lambda: len(stand.stored("leave")) == 5, page=page)
    assert stand.arrived(visit.told, "leave") == 5
    page.goto(visit.address())
    visit.ready(page)
    assert flush(page)["isComplete"]
    run(page, "void record('leave again', 5)")
    until(lambda: len(visit.told) == 10, page=page)
    page.close()
    until(lambda: len(stand.stored("leave again")) == 5)
    visit.check()
    say("events recorded just before the page is left or closed are delivered with their token, without another visit")


def facade(browser, stand):
    visit = Visit(browser, stand)
    page = visit.open(braze=1)
    expired_token = stand.gateway.token("ada", "good", "--lifetime", "60", "--now", str(int(time.time()) - 3600))
    run(page, """token => {
        window.errors = [];
        braze.changeUser('ada', token);
        braze.subscribeToSdkAuthenticationFailures(async (error) => {
            errors.push([error.errorCode, error.reason, error.userId, error.signature === token]);
            braze.setSdkAuthenticationSignature(await provide({ userId: error.userId }));
        });
        braze.logCustomEvent('braze order', { total: 1 });
        braze.requestImmediateDataFlush();
    }""", expired_token)
    until(lambda: len(stand.stored("braze order")) == 1, page=page)
    assert run(page, "errors") == [[22, "EXPIRED", "ada", True]]
    visit.check()
    say("Braze's functions deliver, and a rejected signature is replaced by their callback")


def samples(browser, stand):
    """Braze's samples in JavaScript as modules of a page, with this test's addresses. Their tokens are rejected."""
    folder = WEB / "test/samples"
    for path in folder.iterdir():
        text = path.read_text()
        for word, value in (("@braze/web-sdk", "/src/braze.js"), ("YOUR-API-KEY-HERE", stand.gateway.write_key),
                            ("YOUR-SDK-ENDPOINT-HERE", stand.wire.url)):
            text = text.replace(word, value)
        stand.site.documents[f"/sample/{path.name}"] = text
    stand.site.documents["/sample.html"] = "<!doctype html>" + "".join(
        f'<script type="module" src="sample/{name}.js"></script>' for name in ("enable", "subscribe", "change-user"))
    visit = Visit(browser, stand)
    rejected = []

    def renew(error):
        rejected.append([error["errorCode"], error["userId"], error["signature"]])
        return stand.gateway.token(error["userId"])

    visit.context.expose_function("getNewTokenSomehow", renew)
    page = visit.context.new_page()
    page.goto(f"{stand.site.url}/sample.html")
    for number, signature in enumerate(("JWT-TOKEN-FROM-SERVER", "NEW-JWT-TOKEN-FROM-SERVER")):
        run(page, """async (name) => {
            const braze = await import('/src/braze.js');
            braze.logCustomEvent(name);
            braze.requestImmediateDataFlush();
        }""", f"samples {number}")
        until(lambda: len(stand.stored(f"samples {number}")) == 1, page=page)
        assert rejected[number:] == [[20, "NEW-USER-ID", signature]], rejected
        page.add_script_tag(url="/sample/set-signature.js", type="module")
    visit.check()
    say("Braze's samples in JavaScript deliver: both of their signatures are rejected and replaced by their callback")


def documented(browser, stand):
    """The samples of docs/guides/web.md, with the addresses of this test, each as a page's only script."""
    samples = [part.split("```")[0] for part in (ROOT / "docs/guides/web.md").read_text().split("```js\n")[1:]]
    assert len(samples) == 2, len(samples)
    known = f"const currentUser = 'user-1', newToken = null, tokenFromBackend = '{stand.gateway.token('user-1')}';\n"
    for number, sample in enumerate(samples):
        for name, value in (("./countersign/src/", "/src/"), ("https://events.example", stand.wire.url),
                            ("wk_…", stand.gateway.write_key), ("Order Completed", f"documented {number}")):
            assert name in sample, name
            sample = sample.replace(name, value)
        stand.site.documents[f"/{number}.js"] = known + sample
        stand.site.documents[f"/{number}.html"] = f'<!doctype html><script type="module" src="{number}.js"></script>'
        visit = Visit(browser, stand)
        page = visit.context.new_page()
        page.goto(f"{stand.site.url}/{number}.html")
        until(lambda: len(stand.stored(f"documented {number}")) == 1, page=page)
        assert stand.events(f"documented {number}")[0]["userId"] == "user-1"
        visit.check()
    say("the samples of docs/guides/web.md deliver a signed event")


def served(browser, stand):
    """A page of another origin, which the app allows, loads the client that the gateway serves."""
    with urllib.request.urlopen(f"{stand.gateway.url}/sdk/countersign.json", timeout=10) as answer:
        description = json.load(answer)
    address = stand.gateway.url + description["path"]
    stand.site.documents["/served.js"] = f"""
        import {{ Countersign }} from '{address}';
        const client = new Countersign({{ endpoint: '{stand.wire.url}', writeKey: '{stand.gateway.write_key}' }});
        client.changeUser('ada', '{stand.gateway.token("ada")}');
        client.track('served');
        client.flush();
    """
    stand.site.scripts_from = stand.gateway.url
    for name, integrity in (("good", description["integrity"]), ("bad", "sha256-" + "A" * 43 + "=")):
        stand.site.documents[f"/served-{name}.html"] = (
            f'<!doctype html><script type="module" src="{address}" integrity="{integrity}" crossorigin></script>'
            '<script type="module" src="served.js"></script>')
        visit = Visit(browser, stand)
        page = visit.context.new_page()
        rejected = []
        page.on("console", lambda message: rejected.append(message.text))
        page.goto(f"{stand.site.url}/served-{name}.html")
        if name == "good":
            until(lambda: len(stand.stored("served")) == 1, page=page)
            visit.check()
        else:
            until(lambda: any("integrity" in text for text in rejected), page=page)
            assert len(stand.stored("served")) == 1
            visit.context.close()
    stand.site.scripts_from = ""
    say("a page of another origin loads the client from the gateway, and the browser rejects it if its digest differs")


def serve(stand):
    """Serves a page whose network, tokens and tab can be broken by hand."""
    print(f"Open {Demo(stand).address}\n"
          "Let it record, cut its network, let its tokens expire, kill its tab, open the address again.\n"
          "Ctrl-C ends it.", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass


def main(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m tools web", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SCENARIO")
    parser.add_argument("--countersign", default=str(PROGRAM), type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--demo", action="store_true", help="serve a page to break by hand")
    parser.add_argument("--conformance", action="store_true", help="run only the scenarios of Conformance, and write a report")
    options = parser.parse_args(arguments)
    if options.conformance:
        return scenarios.main()
    stand = Stand(options.countersign)
    try:
        if options.demo:
            return serve(stand)
        with sync_playwright() as playwright:
            for scenario in [signed_event, reload, kill, crash, tabs, unlocked, offline, clock, quota, lost, stuck, blocked, expired, users,
                             leave, facade, samples, documented, story, conformance, served]:
                if options.names and scenario.__name__ not in options.names:
                    continue
                browser = playwright.chromium.launch(**chromium())
                before = (playwright,) if scenario in (crash, blocked) else ()
                after = (options.rounds,) if scenario is kill else ()
                scenario(*before, browser, stand, *after)
                browser.close()
    finally:
        stand.gateway.remove()
    say("all passed")
