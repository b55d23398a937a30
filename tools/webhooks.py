"""Verifies deliveries to webhooks with the reference library of the Standard Webhooks specification. Kills the gateway during
deliveries: each event must be delivered at least once and in order."""

import json
import random
import socket
import threading
import time

from standardwebhooks import Webhook, WebhookVerificationError

from .audit import compare
from .common import DICE, check, parse
from .gateway import Gateway
from .receiver import Receiver


class Deliveries:
    """Records deliveries and invalid signatures. Responds with 500 to `trouble` percent of the deliveries."""

    def __init__(self):
        self.secrets, self.trouble, self.arrived, self.all, self.wrong = [], 0, threading.Condition(), [], []
        self.url = Receiver(self.take).start().url + "/in"

    def take(self, path, body, headers):
        try:
            for secret in self.secrets:
                Webhook(secret).verify(body, headers)
            if self.secrets:
                self.reject(body + b" ", headers)
        except WebhookVerificationError as error:
            self.wrong.append(str(error))
        status = 500 if DICE.randrange(100) < self.trouble else 204
        with self.arrived:
            self.all.append((headers["webhook-id"], status, json.loads(body), headers["webhook-signature"]))
            self.arrived.notify_all()
        return status

    def reject(self, body, headers):
        try:
            Webhook(self.secrets[0]).verify(body, headers)
            self.wrong.append("a changed body passed")
        except WebhookVerificationError:
            pass

    def taken(self):
        return {number for delivery in self.all if delivery[1] == 204 for number in numbers(delivery)}

    def wait(self, what, holds, seconds=60):
        with self.arrived:
            if not self.arrived.wait_for(holds, seconds):
                raise SystemExit(f"webhooks: {what}: not within {seconds} s; {len(self.all)} deliveries")


def numbers(delivery):
    return [event["seq"] for event in delivery[2].get("events", [])]


def create(gateway, url, *arguments):
    made = json.loads(gateway.run("webhook", "create", "shop", url, "--allow-private", "--json", *arguments))
    return made["id"], made["secret"]


def signatures(gateway):
    receiver = Deliveries()
    webhook, secret = create(gateway, receiver.url, "--batch-size", "10")
    create(gateway, "http://127.0.0.1:1/nobody")
    receiver.secrets = [secret]
    gateway.start()
    gateway.track(25)
    receiver.wait("events", lambda: len(receiver.taken()) == 25)
    check("the reference library verifies each delivery", not receiver.wrong, receiver.wrong)
    check("deliveries have at most --batch-size events", all(len(numbers(one)) <= 10 for one in receiver.all))
    first = receiver.all[0][2]
    check("the payload is as documented", first["type"] == "events" and first["app"] == "shop"
          and {"seq", "message_id", "received_ms", "verdict", "body"} <= set(first["events"][0]), first)
    renewed = json.loads(gateway.run("webhook", "rotate", "shop", webhook, "--json"))["secret"]
    time.sleep(2)  # A running gateway loads the new secret within a second.
    receiver.secrets = [secret, renewed]
    gateway.track(1)
    receiver.wait("an event after the rotation", lambda: len(receiver.taken()) == 26)
    check("both secrets verify while one replaces the other", not receiver.wrong and len(receiver.all[-1][3].split(" ")) == 2, receiver.wrong)
    before = len(receiver.all)
    gateway.run("webhook", "test", "shop", webhook)
    gateway.run("webhook", "replay", "shop", webhook, "--from-seq", "1", "--to-seq", "5")
    receiver.wait("a test and a replay", lambda: len(receiver.all) >= before + 2)
    test, replay = receiver.all[before][2], receiver.all[before + 1][2]
    check("a test and a replay are marked", test == {"type": "test"} and replay["replay"] is True and len(replay["events"]) == 5, (test, replay))
    check("deliveries, test and replay have valid signatures", not receiver.wrong, receiver.wrong)
    attempts = [json.loads(line) for line in gateway.run("webhook", "deliveries", "shop", webhook, "--json").splitlines()]
    check("the attempts are listed", {"events", "replay", "test"} == {one["kind"] for one in attempts}, attempts)
    check("the gateway stops", gateway.stop() == 0)
    check("no secret is in the log", not any(one[6:] in gateway.log.read_text() for one in receiver.secrets))
    gateway.run("webhook", "delete", "shop", webhook)


def kills(gateway, rounds, fails_power):
    receiver = Deliveries()
    receiver.trouble = 20
    if fails_power:
        gateway.model_power()
    receiver.secrets = [create(gateway, receiver.url, "--batch-size", "7", "--from", "start")[1]]
    for _ in range(rounds):
        gateway.start()
        for _ in range(random.randrange(1, 6)):
            gateway.track(random.randrange(1, 40))
        time.sleep(random.random() * 1.5)
        gateway.kill()
    receiver.trouble = 0
    gateway.start()
    history = gateway.history()
    compare("stored while the gateway was killed", gateway, history)
    stored = [row[0] for row in history]
    receiver.wait("every event", lambda: receiver.taken() >= set(stored), 120)
    gateway.stop()
    again = in_order(receiver, stored)
    check(f"{rounds} {'power failures' if fails_power else 'kills'}: {len(stored)} events at least once and in order, {again} delivered again", not receiver.wrong, receiver.wrong)


def in_order(receiver, stored):
    """Exits if an event is missing or out of order, or an id has two batches. Returns the number of repeats."""
    index = {number: index for index, number in enumerate(stored)}
    last, batches = -1, {}
    for delivery in receiver.all:
        found = [index[number] for number in numbers(delivery)]
        if found != list(range(found[0], found[-1] + 1)) or found[0] > last + 1:
            raise SystemExit(f"webhooks: out of order: {found[0]} to {found[-1]} after {last}")
        if delivery[1] == 204:
            last = max(last, found[-1])
        batches.setdefault(delivery[0], set()).add(tuple(found))
    check("all attempts with one id have the same batch", all(len(tried) == 1 for tried in batches.values()))
    return sum(len(numbers(one)) for one in receiver.all if one[1] == 204) - len(stored)


def crowd(program, count):
    """Delivers to `count` webhooks, then also to a webhook whose receiver never responds. Prints latency, threads and memory."""
    lags, arrived = [], threading.Condition()

    def take(path, body, _):
        with arrived:
            lags.extend(time.time() - event["body"]["properties"]["sent"] for event in json.loads(body).get("events", []))
            arrived.notify_all()
        return 204

    receiver, silent = Receiver(take).start(), socket.create_server(("127.0.0.1", 0))
    with Gateway(program) as gateway, silent:
        keys = [gateway.app(f"shop{number}") for number in range(-(-count // 100))]
        bearer = gateway.bearer()
        gateway.start()

        def add(number, url):
            status, answer = gateway.ask("POST", f"/admin/api/apps/shop{number // 100}/webhooks", {"url": url, "allow_private": True}, bearer)
            assert status in (200, 201), answer

        def measure(rounds=20):
            lags.clear()
            for number in range(rounds):
                for key in keys:
                    event = {"type": "track", "event": "Order", "userId": "ada", "messageId": f"{key}-{time.time_ns()}",
                             "properties": {"sent": time.time()}}
                    assert gateway.batch([event], key)[0] == 200
                with arrived:
                    assert arrived.wait_for(lambda: len(lags) >= count * (number + 1), 120), f"{len(lags)} deliveries in round {number}"
            lags.sort()
            return lags[len(lags) * 99 // 100]

        for number in range(count):
            add(number, receiver.url + f"/{number}")
        measure(2)
        healthy, threads, memory = measure(), gateway.threads(), gateway.memory()
        add(0, f"http://127.0.0.1:{silent.getsockname()[1]}/silent")
        beside = measure()
        print(f"{count} webhooks: p99 {healthy * 1000:.0f} ms, {threads} threads, {memory:.0f} MB; beside a silent receiver "
              f"{beside * 1000:.0f} ms, {gateway.threads()} threads, {gateway.memory():.0f} MB")
        # Four workers and a timer serve all webhooks, files and streams (docs/internals/concurrency.md).
        check("a silent receiver needs no thread and delays no other webhook", gateway.threads() <= threads + 5 and beside < 2 * healthy + 1)


def main(arguments):
    options = parse(arguments, "webhooks", __doc__, rounds=10, webhooks=20, power=False)
    with Gateway(options.countersign) as gateway:
        gateway.app()
        signatures(gateway)
        kills(gateway, options.rounds, options.power)
    if options.webhooks:
        crowd(options.countersign, options.webhooks)
