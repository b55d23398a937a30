"""One run of a scenario: its servers, gateways, devices and readers, and the check of the result."""

import random
import shutil
import sqlite3
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from ..audit import COUNTS, ERRORS, USERS, Consumer, Follower, Load, account, counted, generations, token_of
from ..common import until, workshop
from ..gateway import COLUMNS, Gateway, command, storage
from ..network import Proxy
from ..postgresql import PostgreSQL

STORED = f"SELECT position, {', '.join(COLUMNS[1:])} FROM countersign.event ORDER BY position"
COUNTED = "SELECT (SELECT count(*) FROM countersign.event), (SELECT coalesce(sum(events), 0) FROM countersign.app_usage)"


def say(name, text, problems=()):
    """Prints the result of a scenario. Returns whether it has no problems."""
    print(f"{name}: {text}" + "".join(f"; {problem}" for problem in problems[:6]) + (": BAD" if problems else ": good"), flush=True)
    return not problems


# Without the limit of token requests for each address, because all devices have the same address.
UNLIMITED = {"COUNTERSIGN_TOKEN_REQUESTS_PER_SECOND": "0"}


def ask(gateway, *arguments, **more):
    """Sends a request. Returns the status and the JSON of the response, or None and {} without a response."""
    try:
        return gateway.ask(*arguments, **more)
    except ERRORS:
        return None, {}


def exchange(gateway, token):
    """Exchanges a refresh token. Returns the status and the new refresh token."""
    status, answer = ask(gateway, "POST", "/api/refresh_token", {"refresh_token": token})
    return status, answer.get("refreshToken") or answer.get("refresh_token")


def integrity(data, load=None):
    """The problems of events.sqlite: SQLite's integrity check, and the counts of events and key uses."""
    database = sqlite3.connect(f"file:{data}/events.sqlite?mode=rwc", uri=True)
    found = database.execute("PRAGMA integrity_check").fetchone()[0]
    problems = [] if found == "ok" else [f"integrity_check reports {found}"]
    # After a power failure without flushes, tables may be missing or lack columns that a migration adds.
    tables = "name IN ('app_usage', 'counted', 'key_use') OR name = 'event' AND sql LIKE '%request_uuid%'"
    if database.execute(f"SELECT count(*) FROM sqlite_schema WHERE {tables}").fetchone() == (4,):
        events, counts, *requests = database.execute(COUNTS).fetchone()
        problems += counted(events, counts, load, *requests)
    database.close()
    return problems


class Tokens:
    """A key pair, and for each user a header with a token. The token is valid even if a gateway's clock is an hour wrong."""

    def __init__(self, program, folder):
        self.folder = folder / "keys"
        command(program, {}, "key", "generate", "--out", self.folder)
        create = ("token", "create", "--key", self.folder / "private.pem", "--now", int(time.time()) - 7200, "--lifetime", "7d")
        self.headers = {user: {"Authorization": "Bearer " + command(
            program, {}, *create, "--user", user, "--claim", f"jti={token_of(user)}")} for user in (f"user-{number}" for number in range(USERS))}

    def require(self, tell, app="shop"):
        tell("key", "add", app, self.folder / "public.pem")
        tell("enforcement", "set", app, "required", "--yes")


class Trial:
    """Gateways with the app `shop`, on a data directory, or on PostgreSQL after a call of `server`."""

    latest = None

    def __init__(self, options, name, program=None):
        self.options, self.name, self.program = options, name, program or options.countersign
        self.folder = workshop(f"countersign-{name}-")
        self.servers, self.gateways, self.proxies, self.readers, self.load, self.key = [], [], [], [], None, None
        self.tokens = Tokens(self.program, self.folder)
        Trial.latest = self

    # MARK: Parts

    def server(self, **more):
        self.servers.append(PostgreSQL(self.folder, f"server-{len(self.servers)}", **more))
        return self.servers[-1]

    @property
    def database(self):
        return self.servers[0].url() if self.servers else None

    def command(self, *arguments):
        return command(self.program, storage(self.folder, self.database), *arguments)

    def app(self):
        """Creates the app, which requires tokens, and API tokens with the scopes reader and admin. Returns the write key."""
        self.key = self.command("app", "create", "shop")
        self.tokens.require(self.command)
        create = ("admin", "token", "create", "--name")
        self.reader, self.admin = ({"Authorization": f"Bearer {self.command(*create, *more)}"} for more in (
            ("reader", "--scopes", "reader", "--app", "shop"), ("owner", "--scopes", "admin")))
        return self.key

    def gateway(self, **more):
        more = {"database": self.database, **more}
        self.gateways.append(Gateway(more.pop("program", self.program), self.folder, f"gateway-{len(self.gateways)}", **more).start())
        return self.gateways[-1]

    def stand(self, gateways, **more):
        """Starts a PostgreSQL server, creates the app and starts gateways."""
        self.server()
        self.app()
        for _ in range(gateways):
            self.gateway(**more)
        return self

    def proxied(self, loss=0.0):
        """Starts a gateway that connects to PostgreSQL through a proxy. Returns both."""
        self.proxies.append(Proxy(self.servers[0].port, loss))
        return self.gateway(database=self.servers[0].url(port=self.proxies[-1].port)), self.proxies[-1]

    def begin(self, **more):
        """Starts the devices and two readers."""
        self.command("consumer", "create", "shop", "named")
        self.load = Load(self.gateways, self.key, users=self.tokens.headers, **more)
        self.readers = [Follower("by position", self.gateways, self.reader), Consumer("named", self.gateways, self.reader)]

    def progress(self, seconds=60):
        """Waits for the next acknowledgement. Returns the seconds that it took."""
        began = time.monotonic()
        return until(f"{self.name}: an acknowledged event", lambda: self.load.last > began, seconds)

    def rotate(self, rounds, many=16):
        """Exchanges a refresh token `many` times at once, then the new token, and so on. Kills a gateway in each tenth generation."""
        problems, statuses, kills, history = [], Counter(), 0, []
        token = self.command("session", "create", "shop", "--user", "user-1")
        with ThreadPoolExecutor(many) as pool:
            for number in range(rounds):
                asked = pool.map(lambda gateway: exchange(gateway, token), (self.gateways * many)[:many])
                victim = random.choice(self.gateways) if number % 10 == 9 else None
                if victim:
                    time.sleep(random.uniform(0, 0.03))
                    victim.kill()
                    kills += 1
                answers = list(asked)
                if victim:
                    victim.start()
                    # A device whose answer was lost sends the same token again.
                    answers.append(exchange(victim, token))
                seen = Counter(status for status, _ in answers)
                statuses += seen
                history += [(token, *answer) for answer in answers]
                problems += [f"generation {number}: {seen}"] * bool(seen.keys() - {200, 503, None})
                if problems or not seen[200]:
                    break
                token = next(child for status, child in answers if status == 200)
            problems += generations(history)
            self.command("session", "revoke", "shop", "--user", "user-1")
            late = sum(exchange(gateway, token)[0] == 200 for gateway in self.gateways)
            problems += [f"{late} gateways exchanged a token of a revoked session"] * bool(late)
        return self.verdict(f"{rounds} generations, each {many} times at once, {kills} kills of a gateway, answers {dict(statuses)}", problems)

    # MARK: The end

    def stored(self, server=None):
        if not self.servers:
            return self.gateways[0].history()
        return [(int(position), *others) for position, *others in (server or self.servers[-1]).rows(STORED)]

    def strange(self, *expected):
        """The statuses other than 200, 503 and `expected` that devices got, as problems."""
        found = {status: count for status, count in self.load.answers.items() if status not in (200, 503, *expected)}
        return [f"devices got the statuses {found}"] if found else []

    def end(self, said, problems=(), lossy=False):
        """Waits until devices and readers have finished. Prints the result and returns whether it is good."""
        self.load.stop()
        for reader in self.readers:
            reader.stop()
        stored = self.stored()
        problems = list(problems) + account(stored, self.load, self.readers, lossy, dense=not self.servers)
        problems += counted(*map(int, self.servers[-1].rows(COUNTED)[0])) if self.servers else integrity(self.gateways[0].data, self.load)
        acknowledged = self.load.acknowledged
        said += f"; {len(acknowledged)} events acknowledged, {len(stored)} stored"
        if lossy:
            said += f", {len(acknowledged - {row[1:3] for row in stored})} gone"
        counts = " and ".join(str(len(reader.seen)) for reader in self.readers)
        return self.verdict(said + (f", read {counts}" if counts else ""), problems)

    def verdict(self, said, problems):
        good = say(self.name, said, problems)
        self.stop()
        if good:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            print(f"{self.name}: logs and data are in {self.folder}", file=sys.stderr)
        return good

    def stop(self):
        if self.load:
            self.load.abandons = True
            self.load.stopping.set()
        for gateway in self.gateways:
            gateway.kill()
        for one in self.proxies + self.servers:
            one.stop()


def usual(options, name, loss=0.0, program=None):
    """Starts PostgreSQL, gateways with the app, devices and readers. Returns once an event is acknowledged."""
    made = Trial(options, name, program).stand(0 if loss else options.gateways)
    for _ in range(options.gateways if loss else 0):
        made.proxied(loss)
    made.begin()
    made.progress()
    for proxy in made.proxies:
        proxy.lose()
    return made
