#!/usr/bin/env python3
"""Lets a gateway export to a receiver that reads OTLP by OpenTelemetry's own messages, and checks what real requests left.

Usage: scripts/otlp-test.py PROGRAM (scripts/otlp-test.sh brings the packages)

Exit status: 0 every span and metric is as it should be; 1 otherwise.
"""

import base64
import gzip
import http.server
import json
import os
import queue
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

SECRET = "collector-secret"
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
IDS = {"traceId": 32, "spanId": 16, "parentSpanId": 16}
REQUESTS = {
    "/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
    "/v1/metrics": metrics_service_pb2.ExportMetricsServiceRequest,
}


def fail(reason):
    sys.exit(f"otlp-test: {reason}")


def check(what, found, expected):
    if found != expected:
        fail(f"{what} is {found!r}, not {expected!r}")


def parse(path, body):
    """A request as OpenTelemetry reads it: unknown names, numbers of the wrong kind and ids that are no hexadecimal are errors."""

    def ids(value):
        # OTLP writes ids as hexadecimal, where the mapping of Protocol Buffers has base64 (OTLP specification, JSON encoding).
        if isinstance(value, list):
            return [ids(item) for item in value]
        if not isinstance(value, dict):
            return value
        made = {name: ids(item) for name, item in value.items()}
        for name, length in IDS.items():
            if name in made:
                if not re.fullmatch(f"[0-9a-f]{{{length}}}", made[name]):
                    raise ValueError(f"{name} {made[name]!r}")
                made[name] = base64.b64encode(bytes.fromhex(made[name])).decode()
        return made

    return json_format.ParseDict(ids(json.loads(body)), REQUESTS[path](), ignore_unknown_fields=False)


class Collector(http.server.BaseHTTPRequestHandler):
    """Refuses the first request for each path as one that is overloaded does, and keeps the others."""

    protocol_version = "HTTP/1.1"
    refused = set()
    kept = queue.Queue()

    def do_POST(self):
        body = gzip.decompress(self.rfile.read(int(self.headers["content-length"])))
        status, answer = 200, b"{}"
        if self.headers["content-type"] != "application/json" or self.headers["content-encoding"] != "gzip" or self.headers["x-tenant"] != SECRET:
            status = 400
        elif self.path == "/otel/v1/traces" and self.path not in self.refused:
            self.refused.add(self.path)
            status = 503
        else:
            try:
                self.kept.put((self.path.removeprefix("/otel"), parse(self.path.removeprefix("/otel"), body), body))
            except (KeyError, ValueError, json_format.ParseError) as error:
                self.kept.put((self.path, error, body))
                status = 400
            else:
                answer = b'{"partialSuccess":{"errorMessage":"a word from the collector"}}'
        self.send_response(status)
        if status == 503:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def attributes(item):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in item.attributes}


def gather(kept, path):
    requests = [request for where, request, _ in kept if where == path]
    kind, items = {"/v1/traces": ("spans", "spans"), "/v1/metrics": ("metrics", "metrics")}[path]
    found = []
    for request in requests:
        for resource in getattr(request, f"resource_{kind}"):
            own = attributes(resource.resource)
            check("service.name", own["service.name"], "countersign")
            check("the resource", sorted(own), ["service.instance.id", "service.name", "service.version"])
            for scope in getattr(resource, f"scope_{kind}"):
                check("the scope", scope.scope.name, "countersign")
                found += getattr(scope, items)
    return found


def spans_of(traces, trace_id):
    return {span.name: span for span in traces if span.trace_id == trace_id}


def judge_traces(traces):
    own = spans_of(traces, bytes.fromhex(CALLER[3:35]))
    check("the spans", sorted(own), ["POST /v1/batch", "admission", "answer", "store", "verify"])
    server = own["POST /v1/batch"]
    check("its parent", server.parent_span_id.hex(), CALLER[36:52])
    check("its kind", server.kind, trace_pb2.Span.SPAN_KIND_SERVER)
    check("its flags", server.flags, 0x301)
    check("its attributes", attributes(server), {
        "http.request.method": "POST", "http.route": "/v1/batch", "http.response.status_code": 200, "url.scheme": "http",
        "server.address": "127.0.0.1", "countersign.app": "shop", "countersign.verdict": "accepted",
        "countersign.events.accepted": 1})
    for name, parent in (("admission", server), ("verify", own["admission"]), ("store", server), ("answer", server)):
        span = own[name]
        check(f"the parent of {name}", span.parent_span_id, parent.span_id)
        check(f"the kind of {name}", span.kind, trace_pb2.Span.SPAN_KIND_INTERNAL)
        if not parent.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= parent.end_time_unix_nano:
            fail(f"{name} is not within its parent")
    if abs(server.start_time_unix_nano / 1e9 - time.time()) > 300:
        fail("the spans are of another time")
    roots = [span for span in traces if span.kind == trace_pb2.Span.SPAN_KIND_SERVER and not span.parent_span_id]
    refused = [span for span in roots if attributes(span).get("error.type") == "EXPIRED"]
    check("the refused request", [attributes(span)["http.response.status_code"] for span in refused], [401])
    check("its status", refused[0].status.code, trace_pb2.Status.STATUS_CODE_UNSET)
    unknown = [span for span in roots if attributes(span).get("error.type") == "not_found"]
    check("a path that is unknown", [span.name for span in unknown], ["GET"])
    if any(span.trace_id == bytes.fromhex("11" * 16) for span in traces):
        fail("a trace is there whose caller does not record it")


def judge_metrics(metrics, text):
    by_name = {metric.name: metric for metric in metrics}
    names = {re.sub(r"_(bucket|sum|count)$", "", line.split("{")[0].split(" ")[0]) for line in text.splitlines() if not line.startswith("#")}
    check("the metrics beyond those of /metrics", sorted(set(by_name) ^ names), [])
    requests = by_name["countersign_requests_total"].sum
    check("the temporality", requests.aggregation_temporality, metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE)
    check("a counter only grows", requests.is_monotonic, True)
    counts = {(attributes(point)["route"], attributes(point)["status"]): point.as_int for point in requests.data_points}
    check("the good requests", counts["/v1/batch", "2xx"], 1)
    check("the refused requests", counts["/v1/batch", "4xx"], 1)
    for point in requests.data_points:
        if not 0 < point.start_time_unix_nano < point.time_unix_nano:
            fail("a counter has no beginning")
    durations = by_name["countersign_request_duration_seconds"]
    check("the unit", durations.unit, "s")
    point = next(point for point in durations.histogram.data_points if attributes(point)["route"] == "/v1/batch")
    check("the histogram", (point.count, sum(point.bucket_counts), len(point.bucket_counts)), (2, 2, len(point.explicit_bounds) + 1))
    check("a gauge", by_name["countersign_disk_free_bytes"].gauge.data_points[0].as_double > 0, True)


def strictness():
    """The judge must be able to refuse."""
    good = '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%s","spanId":"%s"}]}]}]}'
    parse("/v1/traces", good % ("1" * 32, "1" * 16))
    for bad in (good % ("1" * 31, "1" * 16), good % ("z" * 32, "1" * 16), '{"resource_span":[]}',
                '{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"7x"}]}]}]}'):
        try:
            parse("/v1/traces", bad)
        except (ValueError, json_format.ParseError):
            continue
        fail(f"the judge takes {bad}")


def certify(server, folder):
    """Lets the server speak TLS, with a certificate that only the file which is returned vouches for."""
    key, certificate = f"{folder}/collector.key", f"{folder}/collector.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=collector", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return certificate


def main():
    program = sys.argv[1]
    strictness()
    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    with tempfile.TemporaryDirectory() as folder:
        authority = certify(collector, folder)
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        data = f"{folder}/data"

        def run(*arguments):
            return subprocess.run([program, *arguments, "--data", data], capture_output=True, text=True, check=True).stdout.strip()

        key = run("app", "create", "shop")
        subprocess.run([program, "key", "generate", "--out", folder],
                       capture_output=True, check=True)
        run("key", "add", "shop", f"{folder}/public.pem")
        run("enforcement", "set", "shop", "required", "--yes")

        def token(*more):
            made = subprocess.run([program, "token", "create", "--key", f"{folder}/private.pem", "--user", "user-1", *more],
                                  capture_output=True, text=True, check=True)
            return made.stdout.strip()

        headers = Path(folder, "headers")
        headers.write_text(f"X-Tenant: {SECRET}\n")
        log = open(f"{folder}/log", "w")
        gateway = subprocess.Popen(
            [program, "serve", "--data", data, "--port", "0", "--otlp-endpoint", f"https://127.0.0.1:{collector.server_port}/otel/",
             "--otlp-ca-file", authority, "--otlp-headers-file", str(headers), "--otlp-sample-ratio", "1"], stdout=subprocess.PIPE, stderr=log, text=True)
        url = gateway.stdout.readline().strip()

        def send(path, token=None, trace=None, body=None):
            fields = {"X-Write-Key": key} | ({"Authorization": f"Bearer {token}"} if token else {}) | ({"traceparent": trace} if trace else {})
            request = urllib.request.Request(url + path, body.encode() if body else None, fields)
            try:
                return urllib.request.urlopen(request, timeout=20).read().decode()
            except urllib.error.HTTPError as error:
                return error.code

        body = '{"batch":[{"type":"track","event":"Seen","messageId":"m-%s","userId":"user-1"}]}'
        good, expired = token(), token("--now", str(int(time.time()) - 7_200))
        send("/v1/batch", good, CALLER, body % "one")
        check("an expired token", send("/v1/batch", expired, None, body % "two"), 401)
        check("an unknown path", send("/no/such/path"), 404)
        send("/livez", None, f"00-{'11' * 16}-{'22' * 8}-00")
        text = send("/metrics")
        # Traces come within five seconds, the first time in vain; metrics at the end.
        kept = [Collector.kept.get(timeout=60)]
        gateway.send_signal(signal.SIGTERM)
        began = time.monotonic()
        gateway.wait(timeout=60)
        took = time.monotonic() - began
        while not Collector.kept.empty():
            kept.append(Collector.kept.get())
        for path, request, _ in kept:
            if isinstance(request, Exception):
                fail(f"{path} has what OpenTelemetry does not read: {request}")
        check("the first request refused", Collector.refused, {"/otel/v1/traces"})
        judge_traces(gather(kept, "/v1/traces"))
        judge_metrics(gather(kept, "/v1/metrics"), text)
        log.close()
        said = Path(folder, "log").read_text()
        sent = b"".join(raw for *_, raw in kept).decode()
        for secret in (good, expired, key, "user-1", "m-one", SECRET, "no/such/path"):
            if secret in sent:
                fail(f"{secret!r} was exported")
        if SECRET in said:
            fail("the log has the collector's secret")
        for word in ("telemetry not taken", "telemetry taken again", "a word from the collector"):
            if word not in said:
                fail(f"the log does not say {word!r}")
        held_up(program, data)
        print(f"otlp-test: {len(gather(kept, '/v1/traces'))} spans and {len(gather(kept, '/v1/metrics'))} metrics are as OpenTelemetry reads them; "
              f"stopped within {took:.1f} s")


def held_up(program, data):
    """A collector that says nothing holds neither requests nor the end up."""
    silent = http.server.ThreadingHTTPServer(("127.0.0.1", 0), None)  # It listens; nobody answers.
    with open(os.devnull, "w") as nothing:
        gateway = subprocess.Popen(
            [program, "serve", "--data", data, "--port", "0", "--otlp-endpoint", f"http://127.0.0.1:{silent.server_port}",
             "--otlp-sample-ratio", "1"], stdout=subprocess.PIPE, stderr=nothing, text=True)
        url = gateway.stdout.readline().strip()
        slowest = 0
        for _ in range(600):
            began = time.monotonic()
            urllib.request.urlopen(f"{url}/livez", timeout=20).read()
            slowest = max(slowest, time.monotonic() - began)
        began = time.monotonic()
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(timeout=60)
        took = time.monotonic() - began
    if slowest > 2 or took > 8:
        fail(f"a silent collector held a request up for {slowest:.1f} s and the end for {took:.1f} s")


if __name__ == "__main__":
    main()
