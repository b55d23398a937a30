"""Tests unchanged Python clients of other products. Segment's and RudderStack's clients must deliver each event once. To the others the
gateway responds with an error that names the supported endpoint."""

import logging
import threading

from .common import parse
from .gateway import Gateway

EVENTS = 250
# Clients that do not print the body of a response, and the text that each prints when it stops retrying.
SILENT = {"snowplow": "gave up on 1", "otlp": "Failed to export spans batch code: 400"}


def deliver(gateway):
    import rudderstack.analytics.client as rudder
    import segment.analytics.client as segment

    for name, module, is_gzip in [("segment", segment, True), ("segment-plain", segment, False), ("rudder", rudder, True)]:
        errors = []
        client = module.Client(gateway.key, on_error=lambda error, items: errors.append(error), host=gateway.url, gzip=is_gzip)
        user = f"{name}-user-0"
        for number in range(EVENTS):
            client.track(f"{name}-user-{number % 7}", "Order Placed", {"client": name, "number": number})
        # A lone surrogate, as in a title that was cut within an emoji.
        client.track(user, "Seen", {"title": "a\ud83d"})
        client.identify(user, {"plan": "pro"})
        client.page(user, "docs", "home")
        client.screen(user, "docs", "home")
        client.group(user, "group-1")
        client.alias(f"{name}-anonymous", user)
        client.flush()
        client.join()
        rows = gateway.rows("SELECT type, count(*), count(DISTINCT message_id) FROM event WHERE user_id LIKE ? GROUP BY type ORDER BY type",
                            f"{name}-user-%")
        expected = [(kind, 1, 1) for kind in ("alias", "group", "identify", "page", "screen")] + [("track", EVENTS + 1, EVENTS + 1)]
        if errors or rows != expected:
            raise SystemExit(f"{name}: {errors or rows}")
        print(f"{name}: {sum(row[1] for row in rows)} events, each once", flush=True)


class Heard(logging.Handler):
    """Collects the clients' log messages and other reports."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.text, self.changed = "", threading.Condition()

    def emit(self, record):
        self.note(f"{record.getMessage()} {record.exc_info[1] if record.exc_info else ''}")

    def note(self, text):
        with self.changed:
            self.text += f"{text}\n"
            self.changed.notify_all()

    def wait(self, sentence):
        with self.changed:
            return self.changed.wait_for(lambda: sentence in self.text, timeout=20)


def posthog(address, heard):
    from posthog import Posthog

    client = Posthog("phc_key", host=address, max_retries=0, on_error=lambda error, items: heard.note(error))
    client.capture("Order Placed", distinct_id="user-1")
    client.flush()
    client.shutdown()


def amplitude(address, heard):
    from amplitude import Amplitude, BaseEvent

    client = Amplitude("key")
    client.configuration.server_url = address + "/2/httpapi"
    answered = threading.Event()
    client.configuration.callback = lambda event, code, message=None: (heard.note(message), answered.set())
    client.track(BaseEvent("Order Placed", user_id="user-1"))
    client.flush()
    # A shutdown during the flush loses the event.
    answered.wait(30)
    client.shutdown()


def mixpanel(address, heard):
    import mixpanel as library

    try:
        library.Mixpanel("token", consumer=library.Consumer(events_url=address + "/track", retry_limit=0)).track("user-1", "Order Placed")
    except library.MixpanelException as error:
        heard.note(error)


def snowplow(address, heard):
    from snowplow_tracker import Emitter, StructuredEvent, Tracker

    protocol, endpoint = address.split("://")
    emitter = Emitter(endpoint, protocol=protocol, batch_size=1, on_failure=lambda count, events: heard.note(f"gave up on {len(events)}"))
    Tracker("t", emitter).track(StructuredEvent("orders", "placed"))
    if emitter.retry_timer.is_active():
        emitter.retry_timer.cancel()
        raise SystemExit("snowplow: the client sends the same event again")


def sentry(address, heard):
    import sentry_sdk

    sentry_sdk.init(dsn=address.replace("://", "://key@") + "/42", debug=True)
    sentry_sdk.capture_message("hello")
    sentry_sdk.flush(timeout=20)


def otlp(address, heard):
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=address + "/v1/traces", timeout=5)))
    provider.get_tracer("t").start_span("order").end()
    provider.shutdown()


NAMES = {posthog: "PostHog", amplitude: "Amplitude", mixpanel: "Mixpanel", snowplow: "Snowplow", otlp: "OTLP", sentry: "Sentry"}


def main(arguments):
    with Gateway(parse(arguments, "vendors", __doc__).countersign) as gateway:
        gateway.app()
        gateway.start()
        deliver(gateway)
        loggers = [logging.getLogger(name) for name in ("", "posthog", "amplitude", "sentry_sdk.errors", "opentelemetry")]
        for send, name in NAMES.items():
            heard = Heard()
            for logger in loggers:
                logger.handlers = [heard]
            send(gateway.url, heard)
            silent = SILENT.get(send.__name__)
            if not heard.wait(silent or f"the {name} protocol is not supported; send events to POST /v1/batch"):
                raise SystemExit(f"{name}'s client reports: {heard.text or 'nothing'}")
            print(f"{name}: the client {'does not retry' if silent else 'prints the supported endpoint'}", flush=True)
