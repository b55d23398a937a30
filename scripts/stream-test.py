"""Feeds a stream of a real nats-server while the gateway and the server are killed, and compares the stream with what is stored:
everything once and in the order of storing.

    scripts/stream-test.py --countersign PROGRAM --nats-server PROGRAM [--rounds N] [--own-mark] [--only PART] [--events N]

Parts: kills, replicas, credentials, cost; the last only when it is named.

A round of kills stores events and kills the gateway (SIGKILL), the server, or both, at a random moment; after each fourth the stream's last
messages are deleted. Then the server loses what it had acknowledged, and is away while events are stored. `--own-mark` plants a
fault: before each start of the gateway the sink is moved to where the gateway's own side says it is, as if the mark were kept only
there. That must fail.

Replicas: three servers keep the stream, and the one that leads it is killed while it is fed. Credentials: TLS, an NKEY, and .creds
files of an operator's users, good ones and others. Cost: the gateway's processor time for each event of a backlog.

Exit status: 0 all was good, 1 otherwise.
"""
import argparse
import ast
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

from natskeys import Key, Operator
from streams import STREAM, Client, Cluster, Gateway, Server, check, count, differences, ids, published, wait


def plain(gateway, server):
    gateway.track(25)
    gateway.run("sink", "create", "shop", "out", f"nats://127.0.0.1:{server.port}", STREAM)
    wait("25 events are in the stream", lambda: count(server.port) == 25)
    gateway.track(1)
    wait("the next one is too", lambda: count(server.port) == 26)
    messages = published(server.port)
    check("each event is there once, in order", ids(messages) == gateway.stored(), ids(messages))
    _, subject, head, body = messages[0]
    check("the subject has app, type and user", subject.startswith("countersign.shop.track.") and len(subject.split(".")[3]) == 16, subject)
    check("the header has position, id and verdict",
          {"Countersign-Position", "Countersign-Message-Id", "Countersign-Verdict", "Countersign-Epoch"} <= set(head), head)
    database = sqlite3.connect(f"file:{gateway.data}/events.sqlite?mode=ro", uri=True)
    check("the body is the event's bytes", body.decode() == database.execute("SELECT body FROM event ORDER BY seq").fetchone()[0], body)
    wait("the sink says so", lambda: gateway.show()["lag_events"] == 0 and gateway.show()["stream_seq"] == 26)
    with urllib.request.urlopen(f"http://127.0.0.1:{gateway.port}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    check("so do the metrics", 'countersign_sink_lag_events{app="shop",sink="out"} 0' in text
          and 'countersign_sink_published_total{app="shop",sink="out"} 26' in text)


def kills(gateway, server, rounds, own_mark):
    tails = 0
    for number in range(rounds):
        if not gateway.process:
            if own_mark:
                own = gateway.show()["position"]
                gateway.run("sink", "seek", "shop", "out", *(["--position", own] if own else ["--from", "start"]))
            gateway.start()
        if not server.process:
            server.start()
        # More than one window, so that a kill meets messages under way.
        for _ in range(random.randrange(1, 4)):
            gateway.track(random.randrange(50, 900))
        time.sleep(random.random() * 0.4)
        what = number % 4
        if what != 1:
            gateway.kill()
        if what in (1, 2):
            server.kill()
        if what == 3:
            # The server still knows the ids of what is deleted here.
            client = Client(server.port)
            info = client.ask(f"STREAM.INFO.{STREAM}")
            last = info["state"]["last_seq"]
            for victim in range(max(1, last - random.randrange(1, 40)), last + 1):
                client.ask(f"STREAM.MSG.DELETE.{STREAM}", {"seq": victim})
            client.close()
            tails += 1
    if not server.process:
        server.start()
    if not gateway.process:
        gateway.start()
    gateway.track(1)
    stored = gateway.stored()
    wait("all is in the stream", lambda: count(server.port) >= len(stored) and gateway.show()["lag_events"] == 0, 180)
    found = ids(published(server.port))
    print(differences(stored, found))
    check(f"{rounds} rounds of kills, after {tails} of them the stream's end deleted: once and in order", stored == found,
          differences(stored, found))


def lost_files(gateway, server):
    """The server dies and its files are those of some time before: acknowledged messages are gone."""
    copy = f"{server.folder}/copy"
    server.kill()
    shutil.copytree(f"{server.folder}/js", copy)
    server.start()
    before = count(server.port)
    gateway.track(700)
    wait("700 more are in the stream", lambda: count(server.port) == before + 700)
    server.kill()
    shutil.rmtree(f"{server.folder}/js")
    shutil.move(copy, f"{server.folder}/js")
    server.start()
    began = time.monotonic()
    wait("they are fed again", lambda: count(server.port) == before + 700)
    took = time.monotonic() - began
    check(f"700 acknowledged messages that the server has lost are there again, {took:.1f} s after it is back",
          ids(published(server.port)) == gateway.stored(), differences(gateway.stored(), ids(published(server.port))))


def away(gateway, server):
    server.kill()
    gateway.track(900)
    started = gateway.memory()
    began = time.monotonic()
    for _ in range(60):
        gateway.track(900)
    took = time.monotonic() - began
    wait("the failure is shown", lambda: gateway.show()["state"] == "failing" and gateway.show()["error"] == "cannot_connect")
    grown = gateway.memory() - started
    check(f"54,000 events are stored while the stream is away ({took / 54_000 * 1e6:.0f} µs each with their client; memory +{grown} MB)", grown < 40)
    behind, wanted, used = gateway.show()["lag_events"], len(gateway.stored()), gateway.cpu()
    server.start()
    began = time.monotonic()
    wait("all is in the stream", lambda: count(server.port) == wanted, 180)
    took = time.monotonic() - began
    print(f"{behind} events are there {took:.1f} s after the server is back, its pause included; "
          f"{(gateway.cpu() - used) / behind * 1e6:.1f} µs of processor each in the gateway", flush=True)
    wait("the sink says that it works", lambda: gateway.show()["state"] == "active" and gateway.show()["lag_events"] == 0)
    check("they are there once and in order", ids(published(server.port)) == gateway.stored())


def cost(program, server_program, folder, events, rounds):
    """What the gateway takes to publish an event of a backlog, narrow and wide ones."""
    for name, note in (("narrow", ""), ("wide", "x" * 700)):
        os.makedirs(f"{folder}/{name}")
        server = Server(server_program, f"{folder}/{name}", False)
        gateway = Gateway(program, f"{folder}/{name}")
        try:
            server.start()
            gateway.start()
            while gateway.count < events:
                gateway.track(500, note)
            size = os.path.getsize(f"{gateway.data}/events.sqlite") / gateway.count
            found = []
            for _ in range(rounds):
                wait("the gateway rests", lambda: rests(gateway))
                used, began = gateway.cpu(), time.monotonic()
                gateway.run("sink", "create", "shop", "out", f"nats://127.0.0.1:{server.port}", STREAM)
                wait("all is in the stream", lambda: count(server.port) >= gateway.count, 300)
                found.append((gateway.cpu() - used) / gateway.count * 1e6)
                took = time.monotonic() - began
                print(f"{gateway.count / took:.0f} events a second, {found[-1]:.1f} µs each", flush=True)
                gateway.run("sink", "delete", "shop", "out")
                client = Client(server.port)
                client.ask(f"STREAM.DELETE.{STREAM}")
                client.close()
            found.sort()
            print(f"{name} events, {size:.0f} bytes stored each: {found[0]:.1f} {found[len(found) // 2]:.1f} {found[-1]:.1f} µs of "
                  "processor in the gateway (min, median, max)", flush=True)
        finally:
            gateway.kill()
            server.kill()


def replicas(program, server_program, folder, rounds):
    """Three servers keep the stream; the one that leads it is killed while it is fed, and at times all three or the gateway."""
    cluster, gateway = Cluster(server_program, folder), Gateway(program, folder)
    try:
        cluster.start()
        gateway.start()
        gateway.run("sink", "create", "shop", "out", cluster.addresses, STREAM, "--replicas", "3")
        gateway.track(100)
        wait("the first events are in the stream", lambda: cluster.count() == 100)
        check("three servers keep the stream", cluster.info()["config"]["num_replicas"] == 3)
        killed = 0
        for number in range(rounds):
            wait("three servers have all of it", cluster.is_whole)
            for _ in range(random.randrange(1, 4)):
                gateway.track(random.randrange(50, 900))
            time.sleep(random.random() * 0.3)
            victims = cluster.servers if number % 5 == 4 else [cluster.leader() or cluster.servers[0]]
            for victim in victims:
                victim.kill()
                killed += 1
            gateway.track(random.randrange(50, 900))
            if number % 5 == 2:
                gateway.kill()
                gateway.start()
            if number % 2:
                # Two must do, and go on.
                if number % 5 != 4:
                    wait("two servers have all of it", lambda: cluster.count() >= gateway.count)
            cluster.start()
        stored = gateway.stored()
        wait("all is in the stream", lambda: cluster.is_whole() and cluster.count() >= len(stored) and gateway.show()["lag_events"] == 0)
        for leader in ("the leader", "the one that leads after it"):
            wait("three servers have all of it", cluster.is_whole)
            first = cluster.leader()
            found = ids(published(first.port))
            print(differences(stored, found))
            check(f"{rounds} rounds, servers killed {killed} times, {leader} has it once and in order", stored == found)
            first.kill()
            wait("another leads", lambda: cluster.leader() not in (None, first))
            cluster.start()
    finally:
        gateway.kill()
        cluster.kill()


def example(gateway, server):
    """Runs the Python example of docs/stream.md, which reads for ever, until it has printed each event."""
    with open(f"{os.path.dirname(os.path.abspath(__file__))}/../docs/stream.md") as file:
        code = file.read().split("```python\n")[1].split("```")[0]
    address, verdict = '"nats://127.0.0.1:4222"', '"verified"'
    check("the example names a server and a verdict", address in code and verdict in code)
    # These events come without a token.
    code = code.replace(address, f'"nats://127.0.0.1:{server.port}"').replace(verdict, '"not_judged"')
    reader = subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        wanted = count(server.port)
        lines = [reader.stdout.readline() for _ in range(wanted)]
    finally:
        reader.kill()
        reader.wait()
        reader.stdout.close()
    check(f"the example for Python prints the {wanted} events in order", [ast.literal_eval(line)["messageId"] for line in lines] == gateway.stored())


def rests(gateway):
    used = gateway.cpu()
    time.sleep(1)
    return gateway.cpu() - used < 0.03


def credentials(program, server_program, folder):
    """TLS with a CA of its own, and an NKEY."""
    run = lambda *arguments: subprocess.run(arguments, check=True, capture_output=True, cwd=folder)
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=CA", "-keyout", "ca.key", "-out", "ca.pem")
    for name, alternative in [("good", "IP:127.0.0.1"), ("wrong", "DNS:elsewhere.example")]:
        run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        with open(f"{folder}/{name}.ext", "w") as file:
            file.write(f"subjectAltName={alternative}\n")
        run("openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", f"{name}.ext", "-out", f"{name}.pem")
    # An example of NATS' documentation.
    public, seed = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4", "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
    with open(f"{folder}/seed", "w") as file:
        file.write(seed)
    # The machine's authorities, for a sink that names none.
    os.environ["SSL_CERT_FILE"] = f"{folder}/ca.pem"
    authority = ["--stream-ca-file", f"{folder}/ca.pem"]
    for name, certificate, scheme, more, expected in [
        ("good", "good", "tls", authority, "active"), ("wrong", "wrong", "tls", authority, "tls"),
        ("refused", "good", "tls", authority, "refused"),
        # The server requires TLS, so the library changes to it.
        ("changed", "good", "nats", [], "active"), ("changed-wrong", "wrong", "nats", [], "tls"),
    ]:
        os.makedirs(f"{folder}/{name}")
        who = "user: a, password: b" if name == "refused" else f"nkey: {public}"
        server = Server(server_program, f"{folder}/{name}", False, f"""
            tls {{ cert_file: "{folder}/{certificate}.pem", key_file: "{folder}/{certificate}.key" }}
            authorization {{ users = [ {{ {who} }} ] }}
            """)
        server.launch()
        gateway = Gateway(program, f"{folder}/{name}")
        try:
            gateway.start()
            gateway.run("sink", "create", "shop", "out", f"{scheme}://127.0.0.1:{server.port}", STREAM, *more,
                        "--nkey", public, "--nkey-seed-file", f"{folder}/seed")
            gateway.track(5)
            if expected == "active":
                wait(f"{name}: events come over TLS with an NKEY", lambda: gateway.show()["stream_seq"] == 5)
            else:
                wait(f"{name}: the sink fails", lambda: gateway.show()["error"] is not None, 30)
                check(f"{name}: it says {expected}", gateway.show()["error"] == expected, gateway.show())
            gateway.kill(signal.SIGTERM)
            with open(f"{gateway.folder}/log") as file:
                check("no seed is in the log", seed not in file.read() and seed not in json.dumps(gateway.show()))
        finally:
            gateway.kill()
            server.kill()


def credentials_files(program, server_program, folder):
    """A server that trusts an operator, and .creds files of its users and of others."""
    operator = Operator(folder)
    good = operator.user("good")
    for name, file, expected in [
        ("good", good, None),
        ("another-account", operator.user("stranger", Key("account", folder, "other")), "refused"),
        ("expired", operator.user("expired", until=int(time.time()) - 60), "refused"),
        ("may-not-publish", operator.user("reader", pub={"deny": ["countersign.>"]}), "refused"),
        ("may-not-ask", operator.user("mute", pub={"deny": ["$JS.>"]}), "refused"),
        ("no-file", f"{folder}/none.creds", "refused"),
    ]:
        place = f"{folder}/{name}"
        os.makedirs(place)
        server, gateway = Server(server_program, place, False, operator.config), Gateway(program, place)
        used = f"{place}/used.creds"
        if os.path.exists(file):
            shutil.copy(file, used)
        try:
            server.launch()
            gateway.start()
            gateway.run("sink", "create", "shop", "out", f"nats://127.0.0.1:{server.port}", STREAM, "--credentials-file", used)
            gateway.track(5)
            if expected:
                wait(f"{name}: the sink fails", lambda: gateway.show()["error"] is not None)
                check(f"{name}: it says {expected}", gateway.show()["error"] == expected, gateway.show())
                shutil.copy(good, used)
            wait("events come with the credentials file", lambda: gateway.show()["stream_seq"] == 5)
            check(f"{name}: events come" + (" once the file is replaced" if expected else ""), gateway.show()["error"] is None)
            gateway.kill(signal.SIGTERM)
            with open(f"{gateway.folder}/log") as log, open(used) as secret:
                said = log.read() + json.dumps(gateway.show())
                check("nothing of the file is in the log", not any(line in said for line in secret.read().split() if len(line) > 40))
        finally:
            gateway.kill()
            server.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--countersign", required=True)
    parser.add_argument("--nats-server", required=True)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--own-mark", action="store_true")
    parser.add_argument("--only", choices=["kills", "replicas", "credentials", "cost"])
    options = parser.parse_args()
    random.seed(options.seed)
    print(f"seed {options.seed}", flush=True)
    program = os.path.abspath(options.countersign)
    folder = tempfile.mkdtemp(prefix="countersign-stream-")
    for name in ("server", "replicas", "tls", "operator", "cost"):
        os.makedirs(f"{folder}/{name}")
    try:
        if options.only in (None, "kills"):
            feed(program, options, folder)
        if options.only in (None, "replicas"):
            replicas(program, options.nats_server, f"{folder}/replicas", max(5, options.rounds // 4))
        if options.only in (None, "credentials"):
            credentials(program, options.nats_server, f"{folder}/tls")
            credentials_files(program, options.nats_server, f"{folder}/operator")
        if options.only == "cost":
            cost(program, options.nats_server, f"{folder}/cost", options.events, rounds=5)
    finally:
        shutil.rmtree(folder)


def feed(program, options, folder):
    server = Server(options.nats_server, f"{folder}/server", False)
    gateway = None
    try:
        server.start()
        gateway = Gateway(program, folder)
        gateway.start()
        plain(gateway, server)
        example(gateway, server)
        kills(gateway, server, options.rounds, options.own_mark)
        if options.only is None:
            lost_files(gateway, server)
            away(gateway, server)
            gateway.kill(signal.SIGTERM)
    finally:
        if gateway:
            gateway.kill()
        server.kill()


if __name__ == "__main__":
    main()
