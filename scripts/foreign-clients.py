"""Points unchanged clients of other products at the gateway, and checks that each prints what to use instead.

Usage: foreign-clients.py COUNTERSIGN_BINARY
"""

import logging
import sys
import threading

from gateway import serving


# Clients that print no word of an answer's body, and what they say when they give up.
SILENT = {"Snowplow": "gave up on 1", "OTLP": "Failed to export spans batch code: 400"}


class Heard(logging.Handler):
    """Everything that is logged, with a signal when a sentence is among it."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.text = ""
        self.changed = threading.Condition()

    def emit(self, record):
        message = record.getMessage()
        if record.exc_info and record.exc_info[1]:
            message += f" {record.exc_info[1]}"
        with self.changed:
            self.text += message + "\n"
            self.changed.notify_all()

    def wait(self, sentence):
        with self.changed:
            return self.changed.wait_for(lambda: sentence in self.text, timeout=20)


def posthog(address, heard):
    from posthog import Posthog

    client = Posthog("phc_key", host=address, max_retries=0, on_error=lambda error, items: heard.emit(
        logging.makeLogRecord({"msg": str(error)})))
    client.capture("Order Placed", distinct_id="user-1")
    client.flush()
    client.shutdown()


def amplitude(address, heard):
    from amplitude import Amplitude, BaseEvent

    client = Amplitude("key")
    client.configuration.server_url = address + "/2/httpapi"
    client.configuration.callback = lambda event, code, message=None: heard.emit(
        logging.makeLogRecord({"msg": str(message)}))
    client.track(BaseEvent("Order Placed", user_id="user-1"))
    client.flush()
    client.shutdown()


def mixpanel(address, heard):
    import mixpanel as library

    consumer = library.Consumer(events_url=address + "/track", retry_limit=0)
    try:
        library.Mixpanel("token", consumer=consumer).track("user-1", "Order Placed")
    except library.MixpanelException as error:
        heard.emit(logging.makeLogRecord({"msg": str(error)}))


def snowplow(address, heard):
    """Prints no answer's body; what counts is that it gives up instead of sending forever."""
    from snowplow_tracker import Emitter, StructuredEvent, Tracker

    protocol, endpoint = address.split("://")
    emitter = Emitter(endpoint, protocol=protocol, batch_size=1, on_failure=lambda count, events: heard.emit(
        logging.makeLogRecord({"msg": f"gave up on {len(events)}"})))
    Tracker("t", emitter).track(StructuredEvent("orders", "placed"))
    if emitter.retry_timer.is_active():
        emitter.retry_timer.cancel()
        raise SystemExit("Snowplow's client sends the same event again")


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


def main(binary):
    with serving(binary) as (address, _, _):
        for name, send in [("PostHog", posthog), ("Amplitude", amplitude), ("Mixpanel", mixpanel),
                           ("Snowplow", snowplow), ("OTLP", otlp), ("Sentry", sentry)]:
            heard = Heard()
            logging.getLogger().addHandler(heard)
            for logger in ["posthog", "amplitude", "sentry_sdk.errors", "opentelemetry"]:
                logging.getLogger(logger).addHandler(heard)
            send(address, heard)
            expected = SILENT.get(name, f"the {name} protocol is not supported; send events to POST /v1/batch")
            if not heard.wait(expected):
                raise SystemExit(f"{name}'s client says: {heard.text or 'nothing'}")
            print(f"{name}: its client {'gives up' if name in SILENT else 'prints what to use'}")
            logging.getLogger().removeHandler(heard)


main(sys.argv[1])
