"""A gateway exports traces and metrics to a receiver that parses OTLP with OpenTelemetry's own Protocol Buffers messages. Checks the
spans and metrics of real requests."""

import base64
import gzip
import json
import queue
import re
import ssl
import time

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from .common import certify, parse
from .gateway import Gateway
from .receiver import Receiver

SECRET = "collector-secret"
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
IDS = {"traceId": 32, "spanId": 16, "parentSpanId": 16}
REQUESTS = {
    "/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
    "/v1/metrics": metrics_service_pb2.ExportMetricsServiceRequest,
}


def check(what, found, expected):
    if found != expected:
        raise SystemExit(f"otlp: {what} is {found!r}, not {expected!r}")


def decoded(path, body):
    """Parses a request of OTLP/JSON. Raises ValueError or ParseError for unknown names, wrong types and malformed ids."""

    def ids(value):
        # OTLP writes ids as hexadecimal, where the JSON mapping of Protocol Buffers has base64 (OTLP specification, JSON encoding).
        if isinstance(value, list):
            return [ids(item) for item in value]
        if not isinstance(value, dict):
            return value
        made = {name: ids(item) for name, item in value.items()}
        for name in IDS.keys() & made.keys():
            if not re.fullmatch(f"[0-9a-f]{{{IDS[name]}}}", made[name]):
                raise ValueError(f"{name} {made[name]!r}")
            made[name] = base64.b64encode(bytes.fromhex(made[name])).decode()
        return made

    return json_format.ParseDict(ids(json.loads(body)), REQUESTS[path](), ignore_unknown_fields=False)


def strictness():
    """Checks that `decoded` rejects malformed requests."""
    good = '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%s","spanId":"%s"}]}]}]}'
    decoded("/v1/traces", good % ("1" * 32, "1" * 16))
    for bad in (good % ("1" * 31, "1" * 16), good % ("z" * 32, "1" * 16), '{"resource_span":[]}',
                '{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"7x"}]}]}]}'):
        try:
            decoded("/v1/traces", bad)
        except (ValueError, json_format.ParseError):
            continue
        raise SystemExit(f"otlp: {bad} is accepted")


class Collector:
    """Answers the first request with traces as overloaded, and stores the others in `kept`."""

    def __init__(self, folder):
        self.kept, self.rejected = queue.Queue(), 0
        self.certificate, key = certify(folder, "collector")
        receiver = Receiver(self.take)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
        self.url = receiver.start().url.replace("http:", "https:") + "/otel/"

    def take(self, path, body, headers):
        if (headers["content-type"], headers["content-encoding"], headers["x-tenant"]) != ("application/json", "gzip", SECRET):
            return 400
        if path == "/otel/v1/traces" and not self.rejected:
            self.rejected = 1
            return 503, {"Retry-After": 1}, b""
        path, body = path.removeprefix("/otel"), gzip.decompress(body)
        try:
            self.kept.put((path, decoded(path, body), body))
        except (KeyError, ValueError, json_format.ParseError) as error:
            self.kept.put((path, error, body))
            return 400
        return 200, {}, b'{"partialSuccess":{"errorMessage":"a message of the collector"}}'


def attributes(item):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in item.attributes}


def gather(kept, path):
    kind, found = path.removeprefix("/v1/").replace("traces", "spans"), []
    for request in [request for where, request, _ in kept if where == path]:
        for resource in getattr(request, f"resource_{kind}"):
            own = attributes(resource.resource)
            check("service.name", own["service.name"], "countersign")
            check("the resource", sorted(own), ["service.instance.id", "service.name", "service.version"])
            for scope in getattr(resource, f"scope_{kind}"):
                check("the scope", scope.scope.name, "countersign")
                found += getattr(scope, kind)
    return found


def check_traces(traces, port):
    own = {span.name: span for span in traces if span.trace_id == bytes.fromhex(CALLER[3:35])}
    check("the spans", sorted(own), ["POST /v1/batch", "admission", "answer", "store", "verify"])
    server = own["POST /v1/batch"]
    check("its parent", server.parent_span_id.hex(), CALLER[36:52])
    check("its kind and flags", (server.kind, server.flags), (trace_pb2.Span.SPAN_KIND_SERVER, 0x301))
    check("its attributes", attributes(server), {
        "http.request.method": "POST", "http.route": "/v1/batch", "http.response.status_code": 200, "url.scheme": "http",
        "server.address": "127.0.0.1", "server.port": port, "countersign.app": "shop", "countersign.verdict": "accepted",
        "countersign.events.accepted": 1})
    for name, parent in (("admission", server), ("verify", own["admission"]), ("store", server), ("answer", server)):
        span = own[name]
        check(f"the parent of {name}", span.parent_span_id, parent.span_id)
        check(f"the kind of {name}", span.kind, trace_pb2.Span.SPAN_KIND_INTERNAL)
        times = [parent.start_time_unix_nano, span.start_time_unix_nano, span.end_time_unix_nano, parent.end_time_unix_nano]
        check(f"the order of times of {name} and its parent", times, sorted(times))
    check("whether the spans have the present time", abs(server.start_time_unix_nano / 1e9 - time.time()) < 300, True)
    roots = [span for span in traces if span.kind == trace_pb2.Span.SPAN_KIND_SERVER and not span.parent_span_id]
    rejected = [span for span in roots if attributes(span).get("error.type") == "EXPIRED"]
    check("the rejected request", [(attributes(span)["http.response.status_code"], span.status.code) for span in rejected],
          [(401, trace_pb2.Status.STATUS_CODE_UNSET)])
    check("the list of spans of an unknown path", [span.name for span in roots if attributes(span).get("error.type") == "not_found"], ["GET"])
    check("the list of spans whose caller does not sample its trace", [span.name for span in traces if span.trace_id == bytes.fromhex("11" * 16)], [])


def check_metrics(metrics, text):
    by_name = {metric.name: metric for metric in metrics}
    names = {re.sub(r"_(bucket|sum|count)$", "", re.split("[{ ]", line)[0]) for line in text.splitlines() if not line.startswith("#")}
    check("the difference between exported names and /metrics", sorted(set(by_name) ^ names), [])
    requests = by_name["countersign_requests_total"].sum
    check("the temporality", requests.aggregation_temporality, metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE)
    check("whether a counter is monotonic", requests.is_monotonic, True)
    counts = {(attributes(point)["route"], attributes(point)["status"]): point.as_int for point in requests.data_points}
    check("the counts of accepted and rejected requests", (counts["/v1/batch", "2xx"], counts["/v1/batch", "4xx"]), (1, 1))
    check("whether each counter has a start time", all(0 < point.start_time_unix_nano < point.time_unix_nano for point in requests.data_points), True)
    durations = by_name["countersign_request_duration_seconds"]
    point = next(point for point in durations.histogram.data_points if attributes(point)["route"] == "/v1/batch")
    check("the histogram", (durations.unit, point.count, sum(point.bucket_counts), len(point.bucket_counts)),
          ("s", 2, 2, len(point.explicit_bounds) + 1))
    check("whether a gauge has a value", by_name["countersign_disk_free_bytes"].gauge.data_points[0].as_double > 0, True)


def exported(gateway):
    collector = Collector(gateway.folder)
    headers = gateway.folder / "headers"
    headers.write_text(f"X-Tenant: {SECRET}\n")
    gateway.flags += ("--otlp-endpoint", collector.url, "--otlp-ca-file", str(collector.certificate), "--otlp-headers-file", str(headers),
                      "--otlp-sample-ratio", "1")
    key = gateway.app(enforcement="required")
    gateway.pairs("good")
    gateway.run("key", "add", "shop", gateway.path("good", "public.pem"))
    gateway.start()

    def send(token, name, **more):
        event = {"type": "track", "event": "Seen", "messageId": f"m-{name}", "userId": "user-1"}
        return gateway.ask("POST", "/v1/batch", {"batch": [event]}, {"X-Write-Key": key, "Authorization": f"Bearer {token}", **more})[0]

    good, expired = gateway.token("user-1"), gateway.token("user-1", "good", "--now", str(int(time.time()) - 7_200))
    check("the status of a valid token", send(good, "one", traceparent=CALLER), 200)
    check("the status of an expired token", send(expired, "two"), 401)
    check("the status of an unknown path", gateway.ask("GET", "/no/such/path")[0], 404)
    gateway.ask("GET", "/livez", headers={"traceparent": f"00-{'11' * 16}-{'22' * 8}-00"})
    text = gateway.metrics()
    # The gateway exports traces within five seconds, repeats the first request, which fails, and exports metrics last.
    kept = [collector.kept.get(timeout=60)]
    began = time.monotonic()
    gateway.stop()
    took = time.monotonic() - began
    while not collector.kept.empty():
        kept.append(collector.kept.get())
    check("the list of requests that OpenTelemetry cannot parse", [(path, str(found)) for path, found, _ in kept if isinstance(found, Exception)], [])
    check("the number of requests answered as overloaded", collector.rejected, 1)
    traces, metrics = gather(kept, "/v1/traces"), gather(kept, "/v1/metrics")
    check_traces(traces, gateway.port)
    check_metrics(metrics, text)
    sent, said = b"".join(raw for *_, raw in kept).decode(), gateway.log.read_text()
    check("the list of exported secrets", [secret for secret in (good, expired, key, "user-1", "m-one", SECRET, "no/such/path") if secret in sent], [])
    check("whether the log has the collector's secret", SECRET in said, False)
    check("the list of messages missing in the log", [word for word in ("telemetry not exported", "telemetry accepted again", "a message of the collector")
                                       if word not in said], [])
    print(f"otlp: OpenTelemetry parses {len(traces)} spans and {len(metrics)} metrics; the gateway stopped within {took:.1f} s")


def held_up(gateway):
    """A collector that never responds delays neither requests nor the gateway's shutdown."""
    silent = Receiver(None)  # Listens without a thread that serves connections.
    gateway.flags += ("--otlp-endpoint", silent.url, "--otlp-sample-ratio", "1")
    gateway.start()
    slowest = 0
    for _ in range(600):
        began = time.monotonic()
        gateway.ask("GET", "/livez")
        slowest = max(slowest, time.monotonic() - began)
    began = time.monotonic()
    gateway.stop()
    took = time.monotonic() - began
    check(f"whether a silent collector delays requests ({slowest:.1f} s) or the shutdown ({took:.1f} s)", slowest > 2 or took > 8, False)


def main(arguments):
    program = parse(arguments, "otlp", __doc__).countersign
    strictness()
    for run in (exported, held_up):
        with Gateway(program, level="info") as gateway:
            run(gateway)
