"""A gateway publishes events to a stream of a real nats-server while both are killed. Each stored event must be in the stream once,
in the order of storing. Parts: kills, replicas, credentials, away.
"""

import argparse
import ast
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time

from .audit import compare
from .common import PROGRAM, ROOT, check, output, until, workshop
from .gateway import Gateway
from .nats import STREAM, Key, NATS, NATSCluster, Operator
from .receiver import Receiver


def show(gateway):
    return json.loads(gateway.run("stream", "show", "shop", "out", "--json"))


def feed(gateway, server, *more):
    gateway.run("stream", "create", "shop", "out", server.url, STREAM, *more)


def begin(options, folder):
    gateway = Gateway(options.countersign, folder)
    gateway.app()
    if options.power:
        gateway.model_power()
    return gateway.start()


def same(what, gateway, server):
    compare(what, gateway, gateway.history(), server.ids())


def plain(gateway, server):
    gateway.track(25)
    feed(gateway, server)
    until("25 events in the stream", lambda: server.count() == 25)
    gateway.track(1)
    until("the next event", lambda: server.count() == 26)
    same("a stream", gateway, server)
    _, subject, headers, body = server.messages()[0]
    check("the subject has app, type and user", subject.startswith("countersign.shop.track.") and len(subject.split(".")[3]) == 16, subject)
    check("the header has position, id and verdict",
          {"Countersign-Position", "Countersign-Message-Id", "Countersign-Verdict", "Countersign-Epoch"} <= set(headers), headers)
    check("the body is the event's bytes", body.decode() == gateway.rows("SELECT body FROM event ORDER BY seq")[0][0], body)
    until("the stream's progress", lambda: show(gateway)["lag_events"] == 0 and show(gateway)["stream_seq"] == 26)
    text = gateway.metrics()
    check("the metrics show the lag and the published messages", 'countersign_stream_lag_events{app="shop",stream="out"} 0' in text
          and 'countersign_stream_published_total{app="shop",stream="out"} 26' in text)


def example(gateway, server):
    """Runs the Python example of docs/guides/nats-jetstream.md until it has printed each event. The example itself does not end."""
    code = (ROOT / "docs/guides/nats-jetstream.md").read_text().split("```python\n")[1].split("```")[0]
    address, verdict = '"nats://127.0.0.1:4222"', '"verified"'
    check("the example has the server address and the verdict that this test replaces", address in code and verdict in code)
    # The events of this test have no token, so their verdict is not `verified`.
    found = server.messages()[0][2]["Countersign-Verdict"]
    code = code.replace(address, f'"{server.url}"').replace(verdict, f'"{found}"')
    reader = subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        lines = [reader.stdout.readline() for _ in range(server.count())]
    finally:
        reader.kill()
        reader.wait()
        reader.stdout.close()
    check("the example for Python prints the events in order", [ast.literal_eval(line)["messageId"] for line in lines] == gateway.stored())


def kills(options, folder):
    """Kills the gateway, the NATS server or both at random moments, or kills the gateway and deletes the stream's last
    messages. Then replaces the server's files by an older copy."""
    server, gateway = NATS(folder / "server"), begin(options, folder)
    try:
        server.start()
        plain(gateway, server)
        example(gateway, server)
        for number in range(options.rounds):
            if not gateway.is_running:
                gateway.start()
            if not server.process:
                server.start()
            # Often more events than may be unacknowledged at once, so that a kill hits unacknowledged messages.
            for _ in range(random.randrange(1, 4)):
                gateway.track(random.randrange(50, 900))
            time.sleep(random.random() * 0.4)
            if number % 4 != 1:
                gateway.kill()
            if number % 4 in (1, 2):
                server.kill()
            if number % 4 == 3:
                server.delete_last(random.randrange(1, 40))
        if not server.process:
            server.start()
        if not gateway.is_running:
            gateway.start()
        gateway.track(1)
        stored = len(gateway.stored())
        until("all events in the stream", lambda: server.count() >= stored and show(gateway)["lag_events"] == 0, 180)
        same(f"{options.rounds} rounds of kills", gateway, server)
        copy = folder / "copy"
        server.kill()
        shutil.copytree(server.files, copy)
        server.start()
        before = server.count()
        gateway.track(700)
        until("700 more in the stream", lambda: server.count() == before + 700)
        server.kill()
        shutil.rmtree(server.files)
        shutil.move(copy, server.files)
        server.start()
        took = until("700 lost messages published again", lambda: server.count() == before + 700)
        same(f"700 acknowledged messages that the server had lost are in the stream again after {took:.1f} s", gateway, server)
    finally:
        gateway.kill()
        server.kill()


def replicas(options, folder):
    """Kills the leader of a stream with three replicas while the gateway publishes, and sometimes all servers or the gateway."""
    cluster, gateway, killed, rounds = NATSCluster(folder), begin(options, folder), 0, max(5, options.rounds // 4)
    try:
        cluster.start()
        feed(gateway, cluster, "--replicas", "3")
        gateway.track(100)
        until("the first events in the stream", lambda: cluster.count() == 100, 90)
        check("the stream has three replicas", cluster.info()["config"]["num_replicas"] == 3)
        for number in range(rounds):
            until("all events in the stream of three servers", cluster.is_whole, 90)
            for _ in range(random.randrange(1, 4)):
                gateway.track(random.randrange(50, 900))
            time.sleep(random.random() * 0.3)
            are_all = number % 5 == 4
            for victim in cluster.servers if are_all else [cluster.leader() or cluster.servers[0]]:
                victim.kill()
                killed += 1
            gateway.track(random.randrange(50, 900))
            if number % 5 == 2:
                gateway.kill()
                gateway.start()
            if number % 2 and not are_all:
                until("all events in the stream of two servers", lambda: cluster.count() >= gateway.count, 90)
            cluster.start()
        until("all events in the stream", lambda: cluster.is_whole() and cluster.count() >= gateway.count
              and show(gateway)["lag_events"] == 0, 90)
        for leader in ("the leader", "the next leader"):
            until("all events in the stream of three servers", cluster.is_whole, 90)
            first = cluster.leader()
            same(f"{rounds} rounds, servers killed {killed} times, {leader}", gateway, first)
            first.kill()
            until("another leader", lambda: cluster.leader() not in (None, first), 90)
            cluster.start()
    finally:
        gateway.kill()
        cluster.kill()


def credentials(options, folder):
    """Tests TLS with a private certificate authority and an NKEY, and .creds files, each also with wrong credentials."""
    def openssl(*words):
        output("openssl", *words, cwd=folder)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=CA", "-keyout", "ca.key", "-out", "ca.pem")
    for name, alternative in [("good", "IP:127.0.0.1"), ("wrong", "DNS:elsewhere.example")]:
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (folder / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", f"{name}.ext", "-out", f"{name}.pem")
    key, seed = Key("user", folder, "nkey"), folder / "seed"
    seed.write_text(key.seed)
    authority = ("--stream-ca-file", f"{folder}/ca.pem")
    nkey = ("--nkey", key.public, "--nkey-seed-file", seed)
    # Without --stream-ca-file the gateway trusts the system's authorities. With nats:// it uses TLS if the server requires TLS.
    machine = {"SSL_CERT_FILE": f"{folder}/ca.pem"}
    for name, certificate, scheme, more, expected in [
        ("good", "good", "tls", authority, None), ("wrong", "wrong", "tls", authority, "tls"), ("refused", "good", "tls", authority, "refused"),
        ("changed", "good", "nats", (), None), ("changed-wrong", "wrong", "nats", (), "tls"),
    ]:
        user = "user: a, password: b" if name == "refused" else f"nkey: {key.public}"
        server = NATS(folder / f"tls-{name}", f"""
            tls {{ cert_file: "{folder}/{certificate}.pem", key_file: "{folder}/{certificate}.key" }}
            authorization {{ users = [ {{ {user} }} ] }}
            """)
        server.url = server.url.replace("nats://", f"{scheme}://")
        attempt(options, server, f"{name} certificate", (*more, *nkey), expected, [key.seed], machine)
    operator = Operator(folder / "operator")
    good = operator.user("good")
    for name, file, expected in [
        ("good", good, None),
        ("another account's", operator.user("stranger", Key("account", operator.folder, "other")), "refused"),
        ("expired", operator.user("expired", until=int(time.time()) - 60), "refused"),
        ("publish-denied", operator.user("reader", pub={"deny": ["countersign.>"]}), "refused"),
        ("JetStream-denied", operator.user("mute", pub={"deny": ["$JS.>"]}), "refused"),
        ("missing", None, "refused"),
    ]:
        server = NATS(folder / f"creds-{name.split()[0]}-{name.split()[-1]}", operator.config)
        used = server.folder / "used.creds"
        if file:
            shutil.copy(file, used)
        secrets = [line for line in good.read_text().split() if len(line) > 40]
        attempt(options, server, f"{name} credentials", ("--credentials-file", used), expected, secrets, mend=lambda: shutil.copy(good, used))


def attempt(options, server, name, more, expected, secrets, environment=None, mend=None):
    """Publishes five events to a server. With `expected`, the stream must show that error; after `mend` the events must arrive."""
    gateway = Gateway(options.countersign, server.folder, environment=environment)
    gateway.app()
    try:
        server.launch()
        gateway.start()
        feed(gateway, server, *more)
        gateway.track(5)
        if expected:
            until(f"{name}: an error", lambda: show(gateway)["error"] is not None, 90)
            check(f"{name}: the stream's error is {expected}", show(gateway)["error"] == expected, show(gateway))
        if mend and expected:
            mend()
        if mend or not expected:
            until(f"{name}: events", lambda: show(gateway)["stream_seq"] == 5, 90)
            check(f"{name}: events arrive" + (" once the file is replaced" if expected else ""), show(gateway)["error"] is None)
        gateway.stop()
        said = gateway.log.read_text() + json.dumps(show(gateway))
        check("neither the log nor `stream show` has a secret", not any(secret in said for secret in secrets))
    finally:
        gateway.kill()
        server.kill()


def away(options, folder, batch=5, pace=20):
    """Stores events while the NATS server does not run and one webhook never responds. The gateway's memory must not grow, and the
    stream and another webhook must get all events. Prints the other webhook's delay."""
    silent, delays, events, tries = threading.Event(), [], [0], [0]

    def take(path, body, headers):
        if path == "/silent":
            tries[0] += 1
            silent.wait()
            return 204
        found = json.loads(body).get("events", [])
        events[0] += len(found)
        delays.extend(time.time() * 1000 - event["received_ms"] for event in found)
        return 204

    receiver, server, gateway, memory = Receiver(take).start(), NATS(folder / "server"), begin(options, folder), []
    try:
        server.start()
        feed(gateway, server)
        for name in ("silent", "good"):
            gateway.run("webhook", "create", "shop", f"{receiver.url}/{name}", "--allow-private")
        gateway.track(batch)
        until("the first events in the stream", lambda: server.count() == batch)
        server.kill()
        for number in range(12):
            took, end = [], time.monotonic() + options.minutes * 5
            delays.clear()
            while (now := time.monotonic()) < end:
                gateway.track(batch)
                took.append((time.monotonic() - now) * 1000)
                time.sleep(max(0, 1 / pace - took[-1] / 1000))
            memory.append(gateway.memory())
            print(f"{options.minutes / 12 * (number + 1):.1f} min: {gateway.count} events, {memory[-1]:.0f} MB; a request "
                  f"{statistics.median(took):.1f} ms; the other webhook {statistics.median(delays or [0]):.0f} ms after receipt; "
                  f"{tries[0]} attempts at the silent webhook", flush=True)
        check("memory does not grow after the first twelfth of the run", max(memory[1:]) - memory[0] < 15, memory)
        stream = show(gateway)
        check("the stream shows its failure and its lag", (stream["state"], stream["error"], stream["lag_events"])
              == ("failing", "cannot_connect", gateway.count - batch), stream)
        server.start()
        took = until("everything in the stream", lambda: server.count() >= gateway.count, 600)
        same(f"the stream {took:.1f} s after its server is back", gateway, server)
        until("an active stream", lambda: show(gateway)["state"] == "active" and show(gateway)["lag_events"] == 0)
        until("everything at the other webhook", lambda: events[0] >= gateway.count)
        silent.set()
        check("the gateway stops", gateway.stop() == 0)
    finally:
        silent.set()
        gateway.kill()
        server.kill()


PARTS = {part.__name__: part for part in (kills, replicas, credentials, away)}


def main(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m tools stream", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--power", action="store_true", help="the gateway loses its power when it is killed")
    parser.add_argument("--minutes", type=float, default=1, help="for `away`: how long the NATS server does not run")
    parser.add_argument("--countersign", default=str(PROGRAM), type=os.path.abspath)
    options = parser.parse_args(arguments)
    for name in options.parts or PARTS:
        folder = workshop(f"countersign-{name}-")
        PARTS[name](options, folder)
        shutil.rmtree(folder)
