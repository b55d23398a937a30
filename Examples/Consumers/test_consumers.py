"""Run with `python3 -m unittest` in this folder. A server in this process returns the gateway's documented responses."""

import base64
import contextlib
import http.client
import http.server
import json
import sqlite3
import tempfile
import threading
import unittest
from decimal import Decimal
from pathlib import Path
from unittest import mock

import countersign_consumer
import webhook_receiver
import worker
from countersign_consumer import Consumer, ConsumerError, WebhookError, read_events, verify_webhook


def event(seq, body='{"type":"track"}'):
    return json.loads(
        f'{{"body":{body},"code":null,"message_id":"m-{seq}","position":"p{seq}","received_ms":1500,"seq":{seq},'
        '"type":"track","user_id":"user-1","verdict":"verified"}')


def batch(*events, lease="l-1"):
    return {"events": list(events), "events_missed": False, "has_more": True,
            "lease": {"id": lease, "partition": 2, "expires_ms": 9, "position": events[-1]["position"]}}


NOTHING = {"events": [], "events_missed": False, "has_more": False, "lease": None}


def page(*events, next, has_more=True, missed=False):
    return {"events": list(events), "next": next, "has_more": has_more, "events_missed": missed}


def rejection(status, code, **headers):
    return status, {"success": False, "code": code, "reason": "because"}, headers


BROKEN = "BROKEN"


class Gateway(http.server.ThreadingHTTPServer):
    """Answers polls and GET with the script's responses, and other requests with `settlements`, then {}."""

    daemon_threads = True

    def __init__(self, script, settlements=()):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.settlements, self.requests = list(script), list(settlements), []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/base"

    @property
    def asked(self):
        return [path.rsplit("/", 1)[-1].split("?")[0] for _, path, _, _ in self.requests]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, dict(self.headers), json.loads(body) if body else None))
        is_read = self.command == "GET" or self.path.endswith("/poll")
        answers = self.server.script if is_read else self.server.settlements
        answer = answers.pop(0) if answers else (rejection(404, "consumer_not_found") if is_read else {})
        if answer == BROKEN:
            self.close_connection = True
            return
        status, content, headers = answer if isinstance(answer, tuple) else (200, answer, {})
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def log_message(self, *_):
        pass


class Base(unittest.TestCase):
    def setUp(self):
        self.pauses = []
        # Records each pause, at its maximum length, instead of waiting.
        for target, value in (("random.random", lambda: 1.0), ("time.sleep", self.pauses.append)):
            patch = mock.patch("countersign_consumer." + target, value)
            patch.start()
            self.addCleanup(patch.stop)

    def gateway(self, *script, settlements=()):
        server = Gateway(script, settlements)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), thread.join(), server.server_close()))
        return server

    def consumer(self, gateway, **options):
        consumer = Consumer(gateway.address, "shop", "csa_secret", "billing", **options)
        consumer._stopping = Stop(self.pauses)
        self.addCleanup(consumer.close)
        return consumer

    def assertCode(self, code, call, *arguments, **options):
        with self.assertRaises((ConsumerError, WebhookError)) as raised:
            call(*arguments, **options)
        self.assertEqual(raised.exception.code, code)
        self.assertNotIn("csa_secret", str(raised.exception))


class Stop(threading.Event):
    """An event that records the length of each wait instead of waiting."""

    def __init__(self, pauses):
        super().__init__()
        self.pauses = pauses

    def wait(self, timeout=None):
        if timeout:
            self.pauses.append(timeout)
        return self.is_set()


class ConsumerTests(Base):
    def test_a_batch_has_the_events_partition_and_position_of_the_response(self):
        gateway = self.gateway(batch(event(1), event(2, '{"a":1.10}')))
        consumer = self.consumer(gateway, limit=7, lease_seconds=9, parse_float=Decimal)
        got = next(iter(consumer))
        self.assertEqual([one["seq"] for one in got.events], [1, 2])
        self.assertEqual((got.partition, got.position, got.events_missed), (2, "p2", False))
        method, path, headers, body = gateway.requests[0]
        self.assertEqual((method, path), ("POST", "/base/v1/apps/shop/consumers/billing/poll"))
        self.assertEqual(headers["Authorization"], "Bearer csa_secret")
        self.assertEqual(body, {"limit": 7, "wait": 30, "lease_seconds": 9})

    def test_numbers_keep_their_digits_as_decimals(self):
        answer = json.dumps(batch(event(1, '{"a":"X"}'))).replace('"X"', "1.10").encode()
        gateway = self.gateway((200, answer, {}))
        got = next(iter(self.consumer(gateway, parse_float=Decimal)))
        self.assertEqual(str(got.events[0]["body"]["a"]), "1.10")

    def test_a_batch_is_acknowledged_only_by_ack(self):
        gateway = self.gateway(batch(event(1)), batch(event(2), lease="l-2"))
        batches = iter(self.consumer(gateway))
        first = next(batches)
        self.assertEqual(gateway.asked, ["poll"])
        self.assertTrue(first.ack())
        next(batches)
        self.assertEqual(gateway.asked, ["poll", "ack", "poll"])
        self.assertEqual(gateway.requests[1][3], {"lease": "l-1"})

    def test_unacknowledged_batches_are_released_with_growing_pauses(self):
        gateway = self.gateway(batch(event(1)), batch(event(1), lease="l-2"), batch(event(1), lease="l-3"))
        batches = iter(self.consumer(gateway))
        for _ in range(3):
            next(batches)
        self.assertEqual(gateway.asked, ["poll", "release", "poll", "release", "poll"])
        self.assertEqual(self.pauses, [0.5, 1])

    def test_the_end_of_the_with_block_releases_the_batch(self):
        gateway = self.gateway(batch(event(1)))
        with contextlib.suppress(KeyError), self.consumer(gateway) as consumer:
            for _ in consumer:
                raise KeyError
        self.assertEqual(gateway.asked, ["poll", "release"])

    def test_a_part_of_a_batch_is_acknowledged_and_the_rest_released(self):
        gateway = self.gateway(batch(event(1), event(2)))
        with self.consumer(gateway) as consumer:
            got = next(iter(consumer))
            self.assertTrue(got.ack(through=got.events[0]))
        self.assertEqual(gateway.requests[1][3], {"lease": "l-1", "position": "p1"})
        self.assertEqual(gateway.asked, ["poll", "ack", "release"])

    def test_ack_returns_false_for_an_expired_lease(self):
        gateway = self.gateway(batch(event(1)), batch(event(1), lease="l-2"),
                               settlements=[rejection(409, "lease_expired")])
        batches = iter(self.consumer(gateway))
        self.assertFalse(next(batches).ack())
        next(batches)
        self.assertEqual(gateway.asked, ["poll", "ack", "poll"])

    def test_a_failed_acknowledgement_is_sent_again(self):
        gateway = self.gateway(batch(event(1)), settlements=[BROKEN, rejection(503, "storage_unavailable")])
        self.assertTrue(next(iter(self.consumer(gateway))).ack())
        self.assertEqual(gateway.asked, ["poll", "ack", "ack", "ack"])
        self.assertEqual(self.pauses, [0.5, 1])

    def test_retry_after_and_back_off_delay_the_next_request(self):
        gateway = self.gateway(
            rejection(503, "draining", Retry_After="7"), rejection(429, "too_many_readers"), BROKEN, (502, b"<html>", {}),
            rejection(503, "draining", Retry_After="Sun, 22 Nov 2026 20:00:20 GMT", Date="Sun, 22 Nov 2026 20:00:00 GMT"),
            batch(event(1)))
        next(iter(self.consumer(gateway)))
        # The test server adds its own Date first, so the last pause depends on the present time.
        self.assertEqual(self.pauses[:4], [7, 1, 2, 4])
        self.assertEqual(len(self.pauses), 5)

    def test_pauses_are_bounded(self):
        self.assertEqual([countersign_consumer._pause(n) for n in (1, 2, 6, 7, 10_000)], [0.5, 1, 16, 30, 30])
        self.assertEqual(countersign_consumer._pause(1, 10 ** 9), 3600)

    def test_an_immediate_empty_response_is_followed_by_a_pause(self):
        gateway = self.gateway(NOTHING, {**NOTHING, "has_more": True}, batch(event(1)))
        next(iter(self.consumer(gateway)))
        self.assertEqual(len(self.pauses), 1)
        self.assertGreater(self.pauses[0], 0.5)

    def test_stop_ends_the_iteration(self):
        gateway = self.gateway(batch(event(1)), batch(event(2)))
        consumer = self.consumer(gateway)
        for got in consumer:
            got.ack()
            consumer.stop()
        self.assertEqual(gateway.asked, ["poll", "ack"])

    def test_errors_that_a_retry_does_not_solve_are_raised(self):
        for answer, code in (
                (rejection(401, "unauthenticated"), "unauthenticated"), (rejection(403, "forbidden"), "forbidden"),
                (rejection(404, "consumer_not_found"), "consumer_not_found"), ((404, b"", {}), "unexpected_answer"),
                ((301, b"", {"Location": "/"}), "unexpected_answer"), ((200, b"<html>", {}), "unexpected_answer"),
                ((200, b"[" * 100_000, {}), "unexpected_answer"), ({"events": []}, "unexpected_answer")):
            with self.subTest(code=code, answer=str(answer)[:40]):
                self.assertCode(code, next, iter(self.consumer(self.gateway(answer))))

    def test_an_invalid_configuration_is_rejected_by_the_constructor(self):
        good = ["https://g.example", "shop", "csa_secret", "billing"]
        for index, wrong in ((0, "ftp://g"), (0, "https://g?x"), (1, "../x"), (1, ".."), (2, "a\r\nb"), (3, "a/b"), (3, "x\n")):
            arguments = list(good)
            arguments[index] = wrong
            with self.subTest(wrong=wrong):
                self.assertCode("invalid_configuration", Consumer, *arguments)


class ReadEventsTests(Base):
    def test_each_page_continues_at_the_position_of_the_previous_response(self):
        gateway = self.gateway(page(event(1), next="p1"), page(next="p5"), page(event(6), next="p6", missed=True))
        pages = read_events(gateway.address, "shop", "csa_secret", name="a+b & c=é")
        self.assertEqual(next(pages).next, "p1")
        last = next(pages)
        self.assertEqual((last.next, last.events_missed, last.events[0]["seq"]), ("p6", True, 6))
        paths = [path.partition("?")[2] for _, path, _, _ in gateway.requests]
        self.assertEqual(paths[0], "limit=100&wait=30&name=a%2Bb%20%26%20c%3D%C3%A9")
        self.assertTrue(paths[2].startswith("limit=100&wait=30&after=p5&"))
        pages.close()

    def test_without_waiting_the_iteration_ends_after_the_last_event(self):
        gateway = self.gateway(page(event(1), next="p1"), page(next="p1", has_more=False))
        self.assertEqual(len(list(read_events(gateway.address, "shop", "csa_secret", wait=0))), 1)

    def test_an_unknown_filter_is_rejected(self):
        with self.assertRaises(TypeError):
            next(read_events("https://g.example", "shop", "csa_secret", verdikt="x"))

    def test_a_position_of_another_log_is_raised(self):
        gateway = self.gateway(rejection(422, "position_of_another_log"))
        self.assertCode("position_of_another_log", next, read_events(gateway.address, "shop", "csa_secret", "p1"))


SECRET = "whsec_" + base64.b64encode(bytes([7]) * 32).decode()
OTHER = "whsec_" + base64.b64encode(bytes([8]) * 24).decode()
NOW = 1763838000


def signed(body, secret=SECRET, id="msg_1", time=NOW):
    key = base64.b64decode(secret[6:])
    code = countersign_consumer.hmac.new(key, f"{id}.{time}.".encode() + body, "sha256").digest()
    return {"Webhook-Id": id, "Webhook-Timestamp": str(time), "Webhook-Signature": "v1," + base64.b64encode(code).decode()}


class WebhookTests(Base):
    BODY = json.dumps({"type": "events", "app": "shop", "events": [event(17)]}).encode()

    def assertRejected(self, code, headers, body=BODY, secrets=SECRET, now=NOW):
        self.assertCode(code, verify_webhook, secrets, headers, body, now)

    def test_the_example_of_the_specification_is_valid(self):
        headers = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
                   "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
        body = b'{"test": 2432232314}'
        self.assertEqual(
            verify_webhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", headers, body, 1614265330), {"test": 2432232314})

    def test_the_signature_covers_id_time_and_body(self):
        good = signed(self.BODY)
        self.assertEqual(verify_webhook(SECRET, good, self.BODY, NOW)["app"], "shop")
        self.assertRejected("signature_invalid", {**good, "Webhook-Id": "msg_2"})
        self.assertRejected("signature_invalid", {**good, "Webhook-Timestamp": str(NOW + 1)})
        self.assertRejected("signature_invalid", good, self.BODY + b" ")
        self.assertRejected("signature_invalid", good, secrets=OTHER)
        for wrong in ("v1,", "v2" + good["Webhook-Signature"][2:], "é", " "):
            self.assertRejected("signature_invalid", {**good, "Webhook-Signature": wrong})

    def test_one_of_several_signatures_and_secrets_is_enough(self):
        old = signed(self.BODY, OTHER)
        both = {**old, "Webhook-Signature": "v1a,xx " + old["Webhook-Signature"] + " " + signed(self.BODY)["Webhook-Signature"]}
        verify_webhook(SECRET, both, self.BODY, NOW)
        verify_webhook([SECRET, OTHER], old, self.BODY, NOW)
        self.assertRejected("signature_invalid", {**both, "Webhook-Signature": "v1,AAAA " * 8 + both["Webhook-Signature"]})

    def test_the_time_may_be_off_by_five_minutes(self):
        good = signed(self.BODY)
        for offset in (-300, 300):
            verify_webhook(SECRET, good, self.BODY, NOW + offset)
        for offset in (-301, 301):
            self.assertRejected("timestamp_out_of_tolerance", good, now=NOW + offset)

    def test_missing_and_invalid_header_fields_are_rejected(self):
        good = signed(self.BODY)
        for name in good:
            self.assertRejected("signature_missing", {key: value for key, value in good.items() if key != name})
        self.assertRejected("signature_missing", {**good, "Webhook-Timestamp": "-1"})
        self.assertRejected("signature_missing", {**good, "Webhook-Timestamp": "١"})
        self.assertRejected("signature_missing", signed(self.BODY, id="msg.1"))

    def test_an_invalid_secret_is_rejected(self):
        for wrong in ("", "whsec_", "whsec_AAAA", "whsec_!", SECRET[6:]):
            self.assertRejected("invalid_configuration", signed(self.BODY), secrets=wrong)


class ExampleTests(Base):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name) / "store.sqlite")

    def test_a_batch_that_is_delivered_twice_is_booked_once(self):
        gateway = self.gateway(batch(event(1), event(2)), batch(event(1), event(2), event(3), lease="l-2"))
        database = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(database.close)
        database.executescript(worker.SCHEMA)
        batches = iter(self.consumer(gateway))
        worker.book(database, next(batches))
        worker.book(database, next(batches))
        self.assertEqual(database.execute("SELECT seq FROM bookings ORDER BY seq").fetchall(), [(1,), (2,), (3,)])
        self.assertEqual(database.execute("SELECT * FROM progress").fetchall(), [(2, 3, "p3")])

    def test_a_batch_is_booked_completely_or_not_at_all(self):
        gateway = self.gateway(batch(event(1), {**event(2), "message_id": None}))
        database = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(database.close)
        database.executescript(worker.SCHEMA)
        with self.assertRaises(sqlite3.IntegrityError):
            worker.book(database, next(iter(self.consumer(gateway))))
        self.assertEqual(database.execute("SELECT COUNT(*) FROM bookings").fetchone(), (0,))

    def test_a_receiver_stores_each_event_once_and_rejects_wrong_signatures(self):
        server = webhook_receiver.serve(0, self.path, [SECRET])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), thread.join(), server.server_close()))

        def post(body, headers):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
            connection.request("POST", "/events", body, headers)
            status = connection.getresponse().status
            connection.close()
            return status

        now = int(countersign_consumer.time.time())
        with mock.patch("sys.stderr"):
            self.assertEqual(post(WebhookTests.BODY, signed(WebhookTests.BODY, OTHER, time=now)), 401)
        for _ in range(2):
            self.assertEqual(post(WebhookTests.BODY, signed(WebhookTests.BODY, time=now)), 204)
        self.assertEqual(post(b'{"type":"test"}', signed(b'{"type":"test"}', time=now)), 204)
        database = sqlite3.connect(self.path)
        self.addCleanup(database.close)
        self.assertEqual(database.execute("SELECT app, seq, message_id FROM events").fetchall(), [("shop", 17, "m-17")])


if __name__ == "__main__":
    unittest.main()
