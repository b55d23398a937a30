"""Tests against a real gateway. Tests/Clients/clients.py passes its credentials as environment variables."""
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import logging
import os
import queue
import tempfile
import threading
import types
import unittest
import uuid
from concurrent import futures

import countersign

STAND = {name[6:].lower(): value for name, value in os.environ.items() if name.startswith("STAND_")}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=STAND["folder"])
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class ClientTests(Case):
    def client(self, **given):
        return countersign.Client(STAND["endpoint"], STAND["write_key"], data_directory=self.folder,
                                  flush_policy="manual", **given)

    def test_events_are_delivered_with_tokens_from_the_provider(self):
        asked = []

        def provide(request):
            asked.append((request, threading.current_thread()))
            return STAND["ada"]

        with self.client(token_provider=provide) as client:
            # The first token is another user's. The server rejects it, and the provider returns a valid one.
            self.assertTrue(client.identify("ada", STAND["bob"]).result(60))
            self.assertEqual(client.user_id, "ada")
            stored = client.track("python first", {"total": 42.5, "text": "ä🙂"})
            self.assertTrue(stored.result(60))
            result = client.flush(60)
        self.assertEqual((result.delivered, result.queued, result.ending), (2, 0, "drained"))
        self.assertEqual(asked[0][0], countersign.TokenRequest("ada", "rejected", 21))
        self.assertEqual(len(asked), 1)
        self.assertIsNot(asked[0][1], threading.main_thread())

    def test_failures_are_reported_and_tokens_are_not_printed(self):
        told = threading.Event()
        failures = []

        def failed(failure):
            failures.append(failure)
            told.set()

        with self.client(on_authentication_failure=failed) as client:
            client.change_user("ada", STAND["expired"])
            client.track("python expired").result(60)
            batch = client.flush(60).batches[0]
            self.assertEqual((batch.outcome, batch.code), ("token_problem", "EXPIRED"))
            self.assertTrue(told.wait(60))
            self.assertEqual((failures[0].code, failures[0].reason, failures[0].user_id), (22, "EXPIRED", "ada"))
            self.assertEqual(failures[0].token, STAND["expired"])
            self.assertNotIn(STAND["expired"], repr(failures[0]))
            self.assertEqual(client.snapshot()["parked"][0]["userId"], "ada")
            client.set_token(STAND["ada"])
            self.assertEqual(client.log_out(60).queued, 0)
            self.assertIsNone(client.user_id)

    def test_queued_events_are_sent_by_the_next_client(self):
        with self.client() as client:
            client.change_user("ada")
            for number in range(3):
                client.track(f"python left {number}")
        with self.client() as client:
            self.assertEqual(client.user_id, "ada")
            client.set_token(STAND["ada"])
            self.assertEqual(client.flush(60).delivered, 3)

    def test_invalid_calls_raise_countersign_errors(self):
        with self.assertRaises(countersign.CountersignError) as caught:
            countersign.Client("nowhere", "wk")
        self.assertEqual(caught.exception.code, "invalid_configuration")
        with self.assertRaisesRegex(countersign.CountersignError, "there is no limits.some"):
            self.client(limits={"some": 1})
        with self.client() as client:
            with self.assertRaisesRegex(countersign.CountersignError, "kind must be track"):
                client.track("x", kind="fly").result(60)
            # An event with an unpaired surrogate is stored.
            client.track("python \ud83d").result(60)
            with self.assertRaisesRegex(countersign.CountersignError, "properties must be an object"):
                client.track("x", [1]).result(60)
            client.wipe()
            client.opt_out()
            with self.assertRaises(countersign.CountersignError) as caught:
                client.track("x").result(60)
            self.assertEqual(caught.exception.code, "opted_out")
            client.opt_in()
        with self.assertRaises(countersign.CountersignError) as caught:
            client.flush()
        self.assertEqual(caught.exception.code, "closed")
        client.close()

    def test_log_messages_are_sent_to_the_given_logger(self):
        logger = logging.getLogger("test.countersign")
        with self.assertLogs(logger, logging.DEBUG) as caught:
            with self.client(logger=logger, token_provider=lambda _: 1 / 0) as client:
                client.change_user("ada")
                client.track("python logged").result(60)
                self.assertEqual(client.flush(60).queued, 1)
        text = "\n".join(caught.output)
        self.assertIn("the token provider failed", text)
        self.assertIn("ZeroDivisionError", text)
        self.assertIn("DEBUG:test.countersign:", text)

    def test_provider_errors_count_as_no_token(self):
        def leave(_):
            raise SystemExit

        def interrupt(_):
            raise KeyboardInterrupt

        # The time-out is longer than the test may take, so a request without an answer fails the test.
        for provide, error in [(lambda _: b"a.b.c", "a token must be a str, not bytes"), (lambda _: 7, "not int"),
                               (lambda _: "\ud83d", "UnicodeEncodeError"), (leave, "SystemExit"),
                               (interrupt, "KeyboardInterrupt")]:
            logger = logging.getLogger("test.countersign")
            told = threading.Event()
            reasons = []

            def failed(failure):
                reasons.append(failure.reason)
                if failure.origin == "provider":
                    told.set()

            with self.subTest(error), self.assertLogs(logger, logging.WARNING) as caught:
                with self.client(logger=logger, token_provider=provide, token_provider_timeout=3600,
                                 on_authentication_failure=failed) as client:
                    client.change_user("ada")
                    client.track("python never").result(60)
                    client.flush(60)
                    self.assertTrue(told.wait(60))
                    self.assertIn("no_token", reasons)
                    client.wipe()
                text = "\n".join(caught.output)
                self.assertIn("the token provider failed", text)
                self.assertIn(error, text)

    def test_a_failure_handler_that_raises_system_exit_is_called_again(self):
        told = threading.Event()
        codes = []

        def failed(failure):
            codes.append(failure.code)
            if len(codes) > 1:
                told.set()
            raise SystemExit

        with self.assertLogs("countersign", logging.WARNING), self.client(on_authentication_failure=failed) as client:
            for user in ("ada", "bob"):
                client.change_user(user, STAND["expired"])
                client.track("python never").result(60)
            client.flush(60)
            self.assertTrue(told.wait(60))
            client.wipe()

    def test_calls_in_a_forked_child_raise_forked(self):
        with self.client() as client:
            child = os.fork()
            if child == 0:
                try:
                    client.flush(5)
                except countersign.CountersignError as error:
                    os._exit(0 if error.code == "forked" else 1)
                os._exit(2)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(client.flush(60).ending, "drained")


class LocationTests(Case):
    def test_locations_are_sent_after_the_access_token_is_refreshed(self):
        heard = {"authorization": threading.Event(), "upload": threading.Event()}
        events = []

        def hear(name):
            def handler(event):
                events.append(event)
                heard[name].set()
            return handler

        with countersign.LocationClient(
            data_directory=self.folder, http={"url": STAND["endpoint"] + "/api/locations", "autoSync": False},
            authorization={"refreshUrl": STAND["endpoint"] + "/api/refresh_token", "refreshToken": STAND["refresh"],
                           "refreshPayload": {"refresh_token": "{refreshToken}"}},
            on_authorization=hear("authorization"), on_upload=hear("upload"),
        ) as client:
            with self.assertRaises(countersign.CountersignError) as caught:
                client.insert({"coords": {"latitude": 91, "longitude": 0}}).result(60)
            self.assertEqual(caught.exception.code, "invalid_location")
            # `method` and `self` are also names of parameters in the client.
            record = {"coords": {"latitude": 46.05, "longitude": 14.51}, "uuid": "python-location-1", "method": "gps", "self": 1}
            self.assertEqual(client.insert(record).result(60), "python-location-1")
            self.assertEqual(client.insert({**record, "uuid": "python-location-2"}).result(60), "python-location-2")
            self.assertTrue(client.remove("python-location-2"))
            self.assertEqual((client.count(), client.records()[0]["uuid"]), (1, "python-location-1"))
            self.assertEqual(client.records()[0]["method"], "gps")
            self.assertFalse(hasattr(client, "flush"), "only `sync` sends records")
            self.assertEqual(client.sync(60)[0]["uuid"], "python-location-1")
            self.assertTrue(heard["authorization"].wait(60) and heard["upload"].wait(60))
            self.assertTrue(events[0].is_success and events[0].status == 200)
            self.assertNotIn(client.access_token(), repr(events))
            self.assertEqual(client.authorization_state()["kind"], "ready")
            client.configure(http={"url": ""})
            with self.assertRaises(countersign.CountersignError) as caught:
                client.sync(60)
            self.assertEqual(caught.exception.code, "invalid_url")
            client.forget_tokens()
            self.assertEqual(client.authorization_state()["kind"], "no_credential")


@dataclasses.dataclass
class Item:
    name: str
    price: decimal.Decimal


class Text(str):
    def __str__(self):
        return "another"


class Plan(enum.Enum):
    FREE = "free"


class Broken:
    def __len__(self):
        return 1

    def __contains__(self, other):
        return False

    def __iter__(self):
        raise OSError("no")


def nested(levels, around):
    value = 1
    for _ in range(levels):
        value = around(value)
    return value


def depth(value):
    levels = 0
    while isinstance(value, (dict, list)) and value:
        value = list(value.values())[-1] if isinstance(value, dict) else value[-1]
        levels += 1
    return levels


CIRCLE = {"name": "a"}
CIRCLE["self"] = CIRCLE
ZONE = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
NOTHING = object()


class ValueTests(Case):
    """The stored JSON of values of any type (docs/reference/event-format.md)."""

    TABLE = [
        ("subclass of str", Text("mine"), "mine"), ("UserString", collections.UserString("abc"), "abc"),
        ("surrogate pair as two characters", "\ud83d\ude00", "\U0001f600"), ("memoryview of every second byte", memoryview(b"abcd")[::2], "YWM="),
        ("names that differ in an unpaired surrogate", {"\ud800": 1, "\udbff": 2}, {"\ufffd": 2}),
        ("unpaired surrogate", "\ud83d", "\ufffd"), ("fraction", 10.04, 10.04), ("integer", 2 ** 53 + 1, 2 ** 53 + 1),
        ("greatest integer of 64 bits", 2 ** 63 - 1, 2 ** 63 - 1), ("least integer of 64 bits", -2 ** 63, -2 ** 63),
        ("integer of more than 64 bits", 2 ** 64 - 1, "18446744073709551615"), ("integer with thousands of digits", 10 ** 5000, None),
        ("NaN", float("nan"), None), ("infinity", float("-inf"), None),
        ("decimal", decimal.Decimal("10.04"), 10.04), ("decimal of an integer", decimal.Decimal("5.00"), 5),
        ("long decimal", decimal.Decimal("1234567890123456789.01"), "1234567890123456789.01"),
        ("decimal NaN", decimal.Decimal("NaN"), None), ("fraction of integers", fractions.Fraction(1, 4), 0.25),
        ("datetime", datetime.datetime(2025, 6, 15, 15, 6, 40, 7999, ZONE), "2025-06-15T09:36:40.007Z"),
        ("datetime without a zone", datetime.datetime(2025, 6, 15, 15, 6, 40).astimezone().replace(tzinfo=None),
         datetime.datetime(2025, 6, 15, 15, 6, 40).astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")),
        ("date", datetime.date(2025, 6, 15), "2025-06-15"), ("UUID", uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("bytes", b"\0\xff\x10", "AP8Q"), ("bytearray", bytearray(b"\1"), "AQ=="), ("tuple", (1, "a"), [1, "a"]),
        ("set", {1}, [1]), ("map with other keys", {1: "a", None: "b", uuid.UUID(int=0): 2},
                            {"1": "a", "null": "b", "00000000-0000-0000-0000-000000000000": 2}),
        ("None", None, None), ("enum", Plan.FREE, "free"),
        ("dataclass", Item("Tea", decimal.Decimal("1.10")), {"name": "Tea", "price": 1.1}),
        ("function", print, NOTHING), ("object", object(), NOTHING), ("timedelta", datetime.timedelta(1), NOTHING),
        ("unsupported element", [print, 1], [None, 1]), ("iterator that raises", Broken(), None), ("mapping", types.MappingProxyType({"a": 1}), {"a": 1}),
        ("dict inside itself", CIRCLE, {"name": "a", "self": None}),
    ]

    def stored(self, value):
        with countersign.LocationClient(data_directory=self.folder) as client:
            client.remove_all()
            client.insert({"coords": {"latitude": 1, "longitude": 2}, "extras": {"value": value}}).result(60)
            return client.records()[0]["extras"].get("value", NOTHING)

    def test_values_of_any_type_never_raise(self):
        logging.getLogger("countersign").setLevel(logging.ERROR)
        self.addCleanup(logging.getLogger("countersign").setLevel, logging.NOTSET)
        for name, value, expected in self.TABLE:
            with self.subTest(name):
                self.assertEqual(self.stored(value), expected)
        with countersign.Client("http://127.0.0.1:1", "wk", data_directory=self.folder, flush_policy="manual") as client:
            for _, value, _ in self.TABLE:
                self.assertTrue(client.track("x", {"v": value}).result(60))
                client.identify("ada", None, {"v": value}).result(60)

    def test_omitted_values_are_logged(self):
        with self.assertLogs("countersign", logging.WARNING) as caught:
            self.stored([print])
        self.assertIn("type=builtin_function_or_method", caught.output[0])

    def test_values_deeper_than_60_levels_are_cut(self):
        for around in (lambda inner: [inner], lambda inner: {"inner": inner}):
            # The record and its extras are two levels.
            self.assertEqual(depth(self.stored(nested(58, around))), 58)
            self.assertEqual(depth(self.stored(nested(20_000, around))), 58)

    def test_timestamps_become_utc_unless_they_are_invalid_or_without_zone(self):
        with countersign.LocationClient(data_directory=self.folder) as client:
            for given, expected in [
                (datetime.datetime(2025, 6, 15, 15, 6, 40, 7000, ZONE), "2025-06-15T09:36:40.007Z"),
                ("1965-02-03T00:45:58.021Z", "1965-02-03T00:45:58.021Z"), (-1, "1969-12-31T23:59:59.999Z"),
                ("2026-11-21T08:30:00+0100", "2026-11-21T07:30:00.000Z"), ("2026-11-21T08:30:00", "2026-11-21T08:30:00"),
                ("2026-02-30T08:30:00Z", "2026-02-30T08:30:00Z"),
            ]:
                client.remove_all()
                with self.subTest(given):
                    client.insert({"coords": {"latitude": 1, "longitude": 2}, "timestamp": given}).result(60)
                    self.assertEqual(client.records()[0]["timestamp"], expected)

    def test_a_done_callback_can_wait_for_other_calls(self):
        record = {"coords": {"latitude": 1, "longitude": 2}}
        client = countersign.LocationClient(data_directory=self.folder)
        waits = [
            client.count, client.snapshot, lambda: client.insert(record).result(60),
            lambda: futures.wait([client.insert(record), client.insert(record)], 60).done and "both",
            lambda: next(futures.as_completed([client.insert(record)], 60)).result(), client.close,
        ]
        for wait in waits:
            results = queue.SimpleQueue()
            client.insert(record).add_done_callback(lambda _, wait=wait: results.put(wait()))
            self.assertNotEqual(results.get(timeout=60), 0)

    def test_a_log_out_takes_effect_before_later_calls(self):
        with countersign.Client("http://127.0.0.1:1", "wk", data_directory=self.folder, flush_policy="manual") as client:
            for _ in range(20):
                client.change_user("ada", "a.a.a")
                left = client._call("logOut")
                self.assertIsNone(client.user_id)
                client.change_user("bob", "b.b.b")
                left.result(60)
                self.assertEqual(client.user_id, "bob")

    def test_ids_event_names_and_tokens_must_be_text(self):
        with countersign.Client("http://127.0.0.1:1", "wk", data_directory=self.folder, flush_policy="manual") as client:
            client.change_user("ada", "t.t.t")
            others = [42, 2 ** 70, b"bob", uuid.UUID(int=1), datetime.date(2025, 6, 15), decimal.Decimal("0.1234567890123456789"),
                      float("nan"), object(), print, [], {}, True, ""]
            for other in others:
                for call in (lambda: client.identify(other, "b.b.b", {"email": "x"}).result(60), lambda: client.change_user(other, "b.b.b"),
                             lambda: client.set_token(other), lambda: client.track(other).result(60)):
                    with self.subTest(other), self.assertRaises(countersign.CountersignError) as caught:
                        call()
                    self.assertEqual(caught.exception.code, "invalid_argument")
                if other != {}:
                    with self.subTest(other), self.assertRaises(countersign.CountersignError):
                        client.track("x", other).result(60)
            self.assertEqual(client.user_id, "ada")
            self.assertEqual(client.snapshot()["recorded"], 0)


class BloomreachTests(Case):
    def test_bloomreach_events_are_delivered_and_queries_return_messages(self):
        asked = []

        def provide():
            asked.append(threading.current_thread())
            return STAND["customer"]

        with countersign.BloomreachClient(
            STAND["project"], STAND["project_key"], STAND["endpoint"], authorization_provider=provide,
            data_directory=self.folder, flushMode="MANUAL",
        ) as client:
            client.identify_customer({"registered": "ada"}, {"city": "Bled"})
            client.track_event("python bloomreach", {"n": 1})
            client.track_campaign_click("https://shop.example/?xnpe_cmp=abc")
            self.assertEqual(client.flush(60).delivered, 3)
            self.assertEqual(client.customer_ids["registered"], "ada")
            self.assertEqual([message["id"] for message in client.fetch_app_inbox()], ["offer"])
            client.mark_app_inbox_as_read("offer")
            self.assertEqual(client.fetch_consents()[0]["id"], "newsletter")
            self.assertEqual(client.fetch_in_app_messages()[0]["id"], "hello")
            self.assertFalse(client.fetch_attributes([{"type": "property", "property": "city"}])[0]["success"])
            client.anonymize()
            self.assertNotIn("registered", client.customer_ids)
        self.assertEqual(len(asked), 2)
        self.assertNotIn(threading.main_thread(), asked)


if __name__ == "__main__":
    unittest.main()
