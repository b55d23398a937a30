"""Scenarios with several gateways on one PostgreSQL: database, network, clocks or gateways fail."""

import json
import random
import statistics
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from ..audit import generations, revoked
from ..common import DICE, on_linux, preloaded, until
from ..gateway import Gateway
from ..network import Namespace, Proxy
from ..postgresql import NAME, Pooler
from .trial import UNLIMITED, Trial, ask, exchange, usual


def middle(times, unit="s"):
    """The median of times in a unit, and the maximum in seconds, as text."""
    factor = 1000 if unit == "ms" else 1
    return f"{statistics.median(times) * factor:.2f} {unit}, at most {max(times):.2f} s"


def gateways(options, rounds):
    """kill -9 of gateways."""
    made = usual(options, "gateways")
    for _ in range(rounds):
        time.sleep(random.uniform(0.02, 0.4))
        gateway = random.choice(made.gateways)
        gateway.kill()
        if random.random() < 0.5:
            time.sleep(random.uniform(0, 0.3))
        gateway.start()
    made.progress()
    return made.end(f"{rounds} gateways killed")


def database(options, rounds):
    """kill -9 of PostgreSQL's postmaster, or of a backend of a gateway."""
    made, back, killed = usual(options, "database"), [], Counter()
    for number in range(rounds):
        time.sleep(random.uniform(0.1, 0.8))
        began = time.monotonic()
        if number % 2:
            killed["a backend"] += made.servers[0].kill_backend()
        else:
            killed["the postmaster"] += 1
            made.servers[0].kill()
            made.servers[0].start()
        made.progress()
        back.append(time.monotonic() - began)
    said = " and ".join(f"{what} {count} times" for what, count in killed.items())
    return made.end(f"killed {said}, back in {middle(back)}")


def time_to_503(made, gateway, seconds):
    """Sends events until the gateway answers 503. Returns the seconds until then (None if it did not) and all statuses."""
    said, began = [], time.monotonic()
    while time.monotonic() - began < seconds:
        identifier = f"cut-{random.getrandbits(64)}"
        made.load.sent.add(("user-0", identifier))
        event = {"type": "track", "event": "Cut", "messageId": identifier, "userId": "user-0"}
        said.append(ask(gateway, "POST", "/v1/batch", {"writeKey": made.key, "batch": [event]}, made.tokens.headers["user-0"], timeout=seconds)[0])
        if said[-1] == 503:
            return time.monotonic() - began, said
        time.sleep(0.05)
    return None, said


def cut_rounds(made, gateway, line, rounds, bound=20):
    """Stalls the connection of one gateway to the database. Checks that the gateway answers 503 meanwhile and recovers."""
    problems, delays, back = [], [], []
    made.begin(timeout=30)
    made.progress()
    for _ in range(rounds):
        time.sleep(random.uniform(0.2, 0.6))
        line.stall()
        seconds, said = time_to_503(made, gateway, bound)
        if seconds is None:
            problems.append(f"while cut off, the gateway answered {Counter(said)} in {bound} s")
        else:
            delays.append(seconds)
        problems += ["while cut off, the gateway acknowledged an event"] * (200 in said)
        problems += ["while cut off, the gateway answered 200 to /readyz"] * (ask(gateway, "GET", "/readyz", timeout=bound)[0] == 200)
        line.mend()
        back.append(until(f"{made.name}: a gateway that is ready again", lambda: ask(gateway, "GET", "/readyz", timeout=5)[0] == 200))
    times = f"503 after {middle(delays)}, ready again in {max(back):.1f} s" if delays else "never rejected"
    return made.end(f"{rounds} times cut off, {times}", problems)


def wire(options, rounds):
    """The connection of one gateway to the database stalls without being closed: the gateway answers 503 meanwhile."""
    made = Trial(options, "wire").stand(options.gateways - 1)
    return cut_rounds(made, *made.proxied(), rounds)


def network(options, rounds):
    """One gateway loses its network link to the database (needs root): the gateway answers 503, also to /readyz."""
    namespace = Namespace()
    try:
        made = Trial(options, "network")
        address = namespace.server + ".1"
        made.server(addresses=("127.0.0.1", address))
        made.app()
        for _ in range(options.gateways - 1):
            made.gateway()
        gateway = made.gateway(database=made.servers[0].url(address=address), host=namespace.devices + ".2",
                               prefix=("ip", "netns", "exec", namespace.name))
        return cut_rounds(made, gateway, namespace, rounds)
    finally:
        namespace.remove()


def unknown(options, rounds):
    """Responses of the database are lost, so that the result of a commit is unknown."""
    made = usual(options, "unknown", loss=0.01)
    time.sleep(rounds)
    # A gateway may repeat the statement itself, so fewer requests may be repeated than responses were lost.
    lost, again = sum(proxy.lost for proxy in made.proxies), sum(count for status, count in made.load.answers.items() if status != 200)
    return made.end(f"{rounds} s, {lost} responses of the database were lost, {again} requests sent again", [] if lost else ["no response was lost"])


def pooler(options, rounds):
    """kill -9 of pgbouncer between the gateways and PostgreSQL."""
    made, back = Trial(options, "pooler"), []
    server = made.server()
    made.app()
    between = Pooler(made.folder, server)
    made.proxies.append(between)
    for _ in range(options.gateways):
        made.gateway(database=server.url(port=between.port))
    made.begin()
    made.progress()
    for _ in range(rounds):
        time.sleep(random.uniform(0.2, 0.8))
        began = time.monotonic()
        between.stop()
        between.start()
        made.progress()
        back.append(time.monotonic() - began)
    return made.end(f"pgbouncer killed {rounds} times, back in {middle(back)}")


def failover(options, rounds):
    """The primary is killed and its standby promoted. With asynchronous replication acknowledged events may be lost, but readers must
    read each stored event. With synchronous replication no acknowledged event may be lost."""
    return all([promotion(options, is_synchronous=number % 2 == 1) for number in range(rounds)])


def promotion(options, is_synchronous):
    made = Trial(options, "failover")
    first = made.server()
    line = Proxy(first.port)
    made.proxies.append(line)
    second = made.server(primary=first, through=line.port)
    if is_synchronous:
        first.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", "postgres")
        first.sql("SELECT pg_reload_conf()", "postgres")
    state = "sync" if is_synchronous else "async"
    until("the standby follows", lambda: [[state]] == first.rows("SELECT sync_state FROM pg_stat_replication"))
    made.app()
    both = f"postgresql://{NAME}@127.0.0.1:{first.port},127.0.0.1:{second.port}/{NAME}?target_session_attrs=read-write"
    for _ in range(options.gateways):
        made.gateway(database=both)
    made.begin()
    time.sleep(random.uniform(1, 3))
    # The standby gets no further events. Only an asynchronous primary still acknowledges events.
    line.stall()
    time.sleep(0.5)
    began = time.monotonic()
    first.kill()
    line.cut()
    second.promote()
    made.progress()
    back = time.monotonic() - began
    time.sleep(1)
    return made.end(f"{state}hronous, acknowledged again after {back:.2f} s", lossy=not is_synchronous)


def migrate(options, rounds, many=8):
    """Many gateways start at once on an empty database, and one is killed: each schema migration runs once."""
    made, problems, slowest, versions = Trial(options, "migrate"), [], 0.0, []
    server = made.server()
    for number in range(rounds):
        name = f"migrate{number}"
        server.make(name)
        began = time.monotonic()
        made.gateways = [Gateway(options.countersign, made.folder, f"gateway-{index}", database=server.url(name))
                         for index in range(many)]
        for gateway in made.gateways:
            gateway.launch()
        victim = random.choice(made.gateways)
        time.sleep(random.uniform(0, 0.3))
        victim.kill()
        for gateway in made.gateways:
            if gateway is not victim and not gateway.started():
                problems.append(f"round {number}: a gateway did not start; see {gateway.log}")
        slowest = max(slowest, time.monotonic() - began)
        versions = [int(row[0]) for row in server.rows("SELECT version FROM countersign.schema_version ORDER BY version", name)]
        if not versions or versions != list(range(versions[0], versions[0] + len(versions))):
            problems.append(f"round {number}: the schema versions are {versions}")
        for gateway in made.gateways:
            gateway.kill()
    return made.verdict(f"{rounds} times {many} gateways at once on an empty database, one killed; {len(versions)} migrations, each once, "
                        f"{slowest:.1f} s at most", problems)


def rolling(options, rounds):
    """Gateways are stopped and started one after the other under load."""
    made, problems = usual(options, "rolling"), []
    for _ in range(rounds):
        for gateway in made.gateways:
            time.sleep(random.uniform(0.1, 0.3))
            problems += ["a gateway did not stop with status 0"] * (gateway.stop() != 0)
            gateway.start()
    return made.end(f"{rounds} rounds over {options.gateways} gateways, 503 to {made.load.answers[503]} requests",
                    problems + made.strange(None))


def upgrade(options, rounds):
    """A later version extends the schema under load: running gateways continue, and another gateway does not start.
    With `--before`, gateways of the previous version are also replaced in turn, and clients' requests succeed."""
    return (not options.before or replaced(options)) and added(options, rounds)


def newest(server):
    return int(server.rows("SELECT max(version) FROM countersign.schema_version")[0][0])


def replaced(options):
    made, problems = usual(options, "upgrade", program=options.before), []
    old = newest(made.servers[0])
    token = made.command("session", "create", "shop", "--user", "user-1")
    for number, gateway in enumerate(made.gateways):
        problems += ["a gateway did not stop with status 0"] * (gateway.stop() != 0)
        gateway.program = options.countersign
        gateway.start()
        # Gateways of each version must work with data that the other version has written.
        for other in made.gateways:
            status, renewed = exchange(other, token)
            problems += [f"a refresh was answered {status} after {number + 1} gateways were replaced"] * (status != 200)
            token = renewed or token
            for path, body in (("/admin/api/apps", {"id": f"app-{number}-{other.port}", "name": "New"}),
                               ("/admin/api/apps/shop/sessions", {"user": "user-2"})):
                status, _ = other.ask("POST", path, body, made.admin)
                problems += [f"POST {path} was answered {status} after {number + 1} gateways were replaced"] * (status != 201)
        made.progress()
    made.program = options.countersign
    if len(json.loads(made.command("app", "list", "--json"))) != 1 + len(made.gateways) ** 2:
        problems.append("an app whose creation was confirmed is missing")
    return made.end(f"{len(made.gateways)} gateways replaced one after the other, schema {old} to {newest(made.servers[0])}, "
                    f"503 to {made.load.answers[503]} requests", problems + made.strange(None))


def added(options, rounds):
    made, problems = usual(options, "upgrade"), []
    server = made.servers[0]
    first = newest(server) + 1
    for number in range(first, first + rounds):
        server.sql(f"""
            BEGIN;
            ALTER TABLE countersign.event ADD COLUMN later_{number} TEXT;
            ALTER TABLE countersign.app ADD COLUMN later_{number} BIGINT NOT NULL DEFAULT 0;
            INSERT INTO countersign.schema_version VALUES ({number}, now(), 'later');
            COMMIT""")
        made.progress()
        time.sleep(1)
    late = Gateway(options.countersign, made.folder, "late", database=made.database)
    late.launch()
    if late.started():
        problems.append("an older program starts on a newer schema")
        late.kill()
    elif late.process.wait(60) == 0 or "newer version" not in late.log.read_text():
        problems.append(f"a gateway does not report the newer schema and end with an error; see {late.log}")
    return made.end(f"{rounds} migrations of later versions under load", problems + made.strange())


def clocks(options, rounds):
    """Gateways whose clocks are an hour apart: no lease and no refresh token is lost, and `cluster status` warns."""
    made, problems, stolen = Trial(options, "clocks"), [], 0
    on_linux("a wrong clock")
    made.server()
    made.app()
    for offset in ("0", "-3600", "3600"):
        made.gateway(environment={**preloaded("wrong-clock", made.folder), "CLOCK_OFFSET": offset})
    made.command("app", "create", "later")
    made.command("enforcement", "set", "later", "required", "--at", "30m", "--yes")
    made.begin()
    made.progress()
    # A gateway must not lease events whose lease another gateway has granted.
    made.command("consumer", "create", "shop", "leased")
    for _ in range(rounds):
        one, other = random.sample(made.gateways, 2)

        def lease(gateway, what, body):
            return gateway.ask("POST", f"/v1/apps/shop/consumers/leased/{what}", body, made.reader)

        _, first = lease(one, "poll", {"limit": 5, "lease_seconds": 60, "wait": 5})
        _, second = lease(other, "poll", {"limit": 5, "lease_seconds": 60, "wait": 0})
        if not first.get("lease"):
            problems.append(f"nothing to lease: {first}")
            continue
        stolen += bool({event["seq"] for event in first["events"]} & {event["seq"] for event in second.get("events", [])})
        status, answer = lease(other, "ack", {"lease": first["lease"]["id"]})
        problems += [f"a lease could not be acknowledged at another gateway: {status} {answer}"] * (status != 200)
        if second.get("lease"):
            lease(one, "release", {"lease": second["lease"]["id"]})
    problems += [f"events of {stolen} leases were leased again by another gateway"] * bool(stolen)
    # Within a minute, each gateway must accept a refresh token a second time, because the first response may be lost.
    token, history = made.command("session", "create", "shop", "--user", "user-1"), []
    for number in range(rounds):
        one, other = random.sample(made.gateways, 2)
        answers = [exchange(one, token), exchange(other, token)]
        history += [(token, *answer) for answer in answers]
        if [status for status, _ in answers] != [200, 200]:
            problems.append(f"refresh {number} was answered {[status for status, _ in answers]}")
            break
        token = answers[0][1]
    problems += generations(history)
    # The gateway whose clock is an hour ahead must not make a scheduled switch that is due in half an hour.
    state = json.loads(made.command("enforcement", "show", "later", "--json"))["state"]
    problems += [f"half an hour early the app was switched to {state}"] * (state != "disabled")
    warned = [warning["code"] for warning in json.loads(made.command("cluster", "status", "--json"))["warnings"]]
    problems += [f"cluster status warns of {warned}"] * (warned.count("clock") != 2)
    return made.end(f"clocks an hour apart, {rounds} leases, {rounds} refreshes at two gateways", problems)


def rotate(options, rounds):
    """All gateways exchange one refresh token at once, and gateways are killed: each generation has one new token."""
    return Trial(options, "rotate").stand(options.gateways, environment=UNLIMITED).rotate(rounds)


class Prober(threading.Thread):
    """Sends events with the current token to one gateway. Records token, begin, end and status of each request."""

    def __init__(self, gateway, key):
        super().__init__(daemon=True)
        self.gateway, self.key, self.token, self.answers, self.is_stopping = gateway, key, None, [], False
        self.start()

    def run(self):
        while not self.is_stopping:
            token, began = self.token, time.monotonic()
            if token:
                event = {"type": "track", "event": "Probe", "messageId": f"probe-{DICE.getrandbits(64)}", "userId": "u"}
                status, _ = ask(self.gateway, "POST", "/v1/batch", {"writeKey": self.key, "batch": [event]},
                                {"Authorization": "Bearer " + token})
                self.answers.append((token, began, time.monotonic(), status))
            time.sleep(0.003)

    def accepted(self, token, since):
        """The times of the 200 responses to requests with this token that began after `since`."""
        return [end for known, begun, end, status in list(self.answers) if known == token and begun > since and status == 200]

    def answered(self, since):
        return any(begun > since and status for _, begun, _, status in self.answers[-50:])


def keys(options, rounds):
    """Keys are added and deleted while gateways get requests, and a gateway is killed or stalls: no gateway accepts a
    request with a deleted key that began after the deletion was confirmed."""
    made, problems, heard, confirmed, gone = Trial(options, "keys").stand(options.gateways - 1), [], [], [], []
    gateway, line = made.proxied()
    made.command("enforcement", "set", "shop", "required", "--yes")
    names = [f"key-{number}" for number in range(4)]
    gateway.pairs(*names)
    pairs = [(gateway.read(name, "public.pem"), gateway.token("u", name)) for name in names]
    probers = [Prober(each, made.key) for each in made.gateways]
    for number in range(rounds):
        public, token = pairs[number % len(pairs)]
        is_stalled, is_killed = number % 5 == 4, number % 5 == 2
        one, other = random.sample(made.gateways[:-1] if is_stalled or is_killed else made.gateways, 2)
        asked = time.monotonic()
        status, answer = one.ask("POST", "/admin/api/apps/shop/keys", {"text": public}, made.admin)
        if status != 201:
            problems.append(f"a key was not added: {status} {answer}")
            break
        identifier, since = answer["id"], time.monotonic()
        for prober in probers:
            prober.token = token
        until("each gateway accepts the new key", lambda: all(prober.accepted(token, since) for prober in probers), 30)
        heard += [min(prober.accepted(token, since)) - since for prober in probers]
        if is_stalled:
            line.stall()
        if is_killed:
            gateway.kill()
        began = time.monotonic()
        status, answer = other.ask("DELETE", f"/admin/api/apps/shop/keys/{identifier}", headers=made.admin, timeout=60)
        done = time.monotonic()
        problems += [f"a key was not deleted: {status} {answer}"] * (status not in (200, 204))
        confirmed.append(done - began)
        gone = [(known, start, min(end, asked) if known == token else end) for known, start, end in gone]
        gone.append((token, done, float("inf")))
        line.mend()
        if is_killed:
            gateway.start()
        until("each gateway answers after the deletion", lambda: all(prober.answered(done) for prober in probers))
        time.sleep(0.3)
        for prober in probers:
            prober.token = None
        time.sleep(0.1)
    for prober in probers:
        prober.is_stopping = True
        prober.join(timeout=60)
    answers = [answer for prober in probers for answer in prober.answers]
    problems += revoked(answers, gone)
    return made.verdict(f"{len(gone)} keys added and deleted, {dict(Counter(answer[3] for answer in answers))}; accepted after "
                        f"{middle(heard, 'ms')}; deletions confirmed after {middle(confirmed, 'ms')}", problems)


def chain(options, rounds):
    """All gateways get changes at once, and gateways are killed: the hash chain of the audit log stays valid."""
    made, problems = Trial(options, "chain").stand(options.gateways), []

    def change(number):
        body = {"id": f"app-{number}", "name": "One of many"}
        return number, ask(DICE.choice(made.gateways), "POST", "/admin/api/apps", body, made.admin)[0]

    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(change, number) for number in range(rounds * 10)]
        for _ in range(3):
            time.sleep(0.3)
            victim = random.choice(made.gateways)
            victim.kill()
            victim.start()
        results = dict(future.result() for future in futures)
    listed = {app["id"] for app in json.loads(made.command("app", "list", "--json"))}
    missing = [number for number, status in results.items() if status == 201 and f"app-{number}" not in listed]
    problems += [f"{len(missing)} confirmed apps are missing"] * bool(missing)
    said = json.loads(made.command("audit", "verify", "--json"))
    problems += [f"audit verify reports {said}"] * (not said.get("ok"))
    return made.verdict(f"{dict(Counter(results.values()))} to changes by 6 writers, {said.get('entries')} entries", problems)
