import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import TestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayHTTP
@testable import GatewayModel
@testable import GatewayObservability

/// Spans and metrics that a gateway exports for real requests to a recording collector.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct TelemetryTests {
    private typealias Object = [String: Any]

    private struct Span {
        let object: Object
        var name: String { object["name"] as? String ?? "" }
        var parent: String? { object["parentSpanId"] as? String }
        var id: String? { object["spanId"] as? String }
        var attributes: [String: String] { TelemetryTests.attributes(object) }
        func time(_ name: String) -> UInt64 { (object[name] as? String).flatMap { UInt64($0) } ?? 0 }
    }

    private static func attributes(_ object: Object) -> [String: String] {
        var attributes: [String: String] = [:]
        for attribute in object["attributes"] as? [Object] ?? [] {
            let value = attribute["value"] as? Object
            attributes[attribute["key"] as? String ?? ""] =
                value?["stringValue"] as? String ?? value?["intValue"] as? String
        }
        return attributes
    }

    private func unpacked(_ request: WebhookServer.Request) throws -> [UInt8] {
        try #require(request.headers["content-encoding"] == "gzip")
        let limits = GatewayLimits()
        let size = try Gunzip.size(of: request.body, limits: limits)
        return try Gunzip.decompress(request.body, size: size, limits: limits)
    }

    private func objects(_ requests: [WebhookServer.Request], path: String) -> [Object] {
        requests.filter { $0.head.hasPrefix("POST \(path) ") }.compactMap {
            (try? JSONSerialization.jsonObject(with: Data(unpacked($0)))) as? Object
        }
    }

    private func spans(_ requests: [WebhookServer.Request]) -> [Span] {
        objects(requests, path: "/v1/traces").flatMap { $0["resourceSpans"] as? [Object] ?? [] }
            .flatMap { $0["scopeSpans"] as? [Object] ?? [] }
            .flatMap { $0["spans"] as? [Object] ?? [] }.map { Span(object: $0) }
    }

    private func metrics(_ requests: [WebhookServer.Request]) -> [String: Object] {
        let all = objects(requests, path: "/v1/metrics").flatMap { $0["resourceMetrics"] as? [Object] ?? [] }
            .flatMap { $0["scopeMetrics"] as? [Object] ?? [] }
            .flatMap { $0["metrics"] as? [Object] ?? [] }
        return Dictionary(all.map { ($0["name"] as? String ?? "", $0) }, uniquingKeysWith: { $1 })
    }

    private func fixture(_ collector: WebhookServer, ratio: Double = 1) throws -> GatewayFixture {
        try GatewayFixture(.standard) {
            var rules = TelemetryRules(endpoint: "http://127.0.0.1:\(collector.port)")
            rules.sampleRatio = ratio
            rules.headers = [("Authorization", "Bearer collector-secret")]
            $0.telemetry = rules
            $0.publicURL = "https://collect.example"
        }
    }

    @Test func aRequestIsExportedAsAServerSpanWithChildSpans() throws {
        let collector = try WebhookServer { _ in .answer(200, body: "{}") }
        defer { collector.close() }
        let fixture = try fixture(collector, ratio: 0)
        let token = try fixture.token(for: "user-1")
        let headers = [
            "X-Write-Key": fixture.writeKey, "Authorization": "Bearer \(token)", "traceparent": Traced.caller,
            "User-Agent": "secret-agent",
        ]
        let answer = try fixture.client().post(batch(trackEvent("m-1")), headers: headers)
        #expect(answer?.status == 200)
        fixture.gateway.stop()
        #expect(collector.requests.allSatisfy { $0.headers["content-type"] == "application/json" })
        #expect(collector.requests.allSatisfy { $0.headers["authorization"] == "Bearer collector-secret" })
        let spans = spans(collector.requests)
        let server = try #require(spans.first)
        try #require(spans.map(\.name) == ["POST /v1/batch", "admission", "verify", "store", "answer"])
        #expect(spans.allSatisfy { $0.object["traceId"] as? String == "0af7651916cd43dd8448eb211c80319c" })
        #expect(server.parent == "b7ad6b7169203331")
        #expect(server.object["kind"] as? Int == 2)
        #expect(server.object["flags"] as? Int == 0x301)
        #expect(
            answer?.headers["traceresponse"] == "00-0af7651916cd43dd8448eb211c80319c-\(server.id ?? "")-01")
        #expect(
            server.attributes == [
                "http.request.method": "POST", "http.route": "/v1/batch", "http.response.status_code": "200",
                "url.scheme": "https", "server.address": "collect.example", "server.port": "443",
                "countersign.app": "shop", "countersign.verdict": "accepted",
                "countersign.events.accepted": "1",
            ])
        // The children of the server span lie within it and do not overlap.
        #expect(spans.map(\.parent) == [server.parent, server.id, spans[1].id, server.id, server.id])
        #expect(Set(spans.map(\.id)).count == 5)
        var last = server.time("startTimeUnixNano")
        #expect(abs(Double(last) / 1e9 - Date().timeIntervalSince1970) < 60)
        for span in [spans[1], spans[3], spans[4]] {
            #expect(span.time("startTimeUnixNano") >= last)
            last = span.time("endTimeUnixNano")
            #expect(last >= span.time("startTimeUnixNano"))
        }
        #expect(last == server.time("endTimeUnixNano"))
        // No span or metric contains user or message ids, secrets, the user agent or the client's address.
        let sent = try collector.requests.map { String(decoding: try unpacked($0), as: UTF8.self) }.joined()
        for secret in [
            token, fixture.writeKey, "user-1", "m-1", "secret-agent", "collector-secret", "127.0.0.1",
        ] {
            #expect(!sent.contains(secret))
        }
    }

    @Test func theSpanOfARejectedRequestHasItsErrorCode() throws {
        let collector = try WebhookServer { _ in .answer(200, body: "{}") }
        defer { collector.close() }
        let fixture = try fixture(collector)
        let token = try fixture.token(for: "user-1", lifetime: -600)
        let headers = ["X-Write-Key": fixture.writeKey, "Authorization": "Bearer \(token)"]
        #expect(try fixture.client().post(batch(trackEvent("m-1")), headers: headers)?.status == 401)
        #expect(try fixture.client().get("/secret-path")?.status == 404)
        fixture.gateway.stop()
        let spans = spans(collector.requests)
        try #require(spans.map(\.name) == ["POST /v1/batch", "admission", "verify", "answer", "GET"])
        #expect(spans[0].parent == nil)
        #expect(spans[0].attributes["error.type"] == "EXPIRED")
        #expect(spans[1].attributes["error.type"] == "EXPIRED")
        #expect(spans[2].attributes["error.type"] == "EXPIRED")
        // A 4xx does not set the error status of a server span.
        #expect(spans[0].object["status"] == nil)
        #expect(spans[4].attributes["error.type"] == "not_found")
        #expect(spans[4].attributes["http.route"] == nil)
    }

    @Test func aTraceThatTheCallerDoesNotSampleIsNotExported() throws {
        let collector = try WebhookServer { _ in .answer(200, body: "{}") }
        defer { collector.close() }
        let fixture = try fixture(collector)
        let answer = try fixture.client().get(
            "/livez", headers: ["traceparent": String(Traced.caller.dropLast()) + "0"])
        #expect(answer?.headers["traceresponse"]?.hasSuffix("-00") == true)
        fixture.gateway.stop()
        #expect(spans(collector.requests).isEmpty)
    }

    @Test(arguments: [
        (0.25, 0x3FFF_FFFF_FFFF_F000, true), (0.25, 0x4000_0000_0000_0000, false), (0, 0, false),
    ])
    func newTracesAreSampledByTheRatio(ratio: Double, random: UInt64, expected: Bool) {
        let span = TraceSampler(ratio: ratio) { random }.span(caller: nil)
        #expect((span != nil) == expected)
    }

    @Test func exportedMetricsEqualThePrometheusMetrics() throws {
        let collector = try WebhookServer { _ in .answer(200, body: "{}") }
        defer { collector.close() }
        let fixture = try fixture(collector)
        let token = try fixture.token(for: "user-1")
        let good = ["X-Write-Key": fixture.writeKey, "Authorization": "Bearer \(token)"]
        for _ in 0..<2 {
            #expect(try fixture.client().post(batch(trackEvent("m-1")), headers: good)?.status == 200)
        }
        let text = try #require(try fixture.client().get("/metrics")?.body)
        fixture.gateway.stop()
        let metrics = metrics(collector.requests)
        // The same metrics as `/metrics`, except those without samples.
        let families = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map {
            String($0.prefix { $0 != "{" && $0 != " " }).replacing(/_(bucket|sum|count)$/, with: "")
        }
        #expect(Set(metrics.keys) == Set(families))
        let requests = metrics["countersign_requests_total"]?["sum"] as? Object
        #expect(requests?["aggregationTemporality"] as? Int == 2)
        #expect(requests?["isMonotonic"] as? Bool == true)
        let points = requests?["dataPoints"] as? [Object] ?? []
        let own = points.first { Self.attributes($0)["route"] == "/v1/batch" }
        #expect(own?["asInt"] as? String == "2")
        let start = (own?["startTimeUnixNano"] as? String).flatMap { UInt64($0) } ?? 0
        let end = (own?["timeUnixNano"] as? String).flatMap { UInt64($0) } ?? 0
        #expect(start > 0 && start < end)
        let durations = metrics["countersign_request_duration_seconds"]
        #expect(durations?["unit"] as? String == "s")
        let histogram = durations?["histogram"] as? Object
        #expect(histogram?["aggregationTemporality"] as? Int == 2)
        let point = (histogram?["dataPoints"] as? [Object] ?? []).first {
            Self.attributes($0)["route"] == "/v1/batch"
        }
        let counts = (point?["bucketCounts"] as? [String] ?? []).compactMap { Int($0) }
        #expect(counts.reduce(0, +) == 2)
        #expect(counts.count == (point?["explicitBounds"] as? [Double] ?? []).count + 1)
        #expect(point?["count"] as? String == "2")
        #expect((metrics["countersign_store_bytes"]?["gauge"] as? Object) != nil)
    }

    /// A collector that accepts connections but never answers, and an unreachable collector.
    @Test(arguments: [true, false])
    func aFailingCollectorDelaysNoRequest(hangs: Bool) throws {
        let collector = try WebhookServer { _ in .hang }
        defer { collector.close() }
        let fixture = try GatewayFixture(.standard) {
            $0.telemetry = TelemetryRules(
                endpoint: hangs ? "http://127.0.0.1:\(collector.port)" : "http://127.0.0.1:9")
            $0.telemetry?.sampleRatio = 1
            $0.stopGraceSeconds = 0.5
        }
        let client = try fixture.client()
        for _ in 0..<ExportSchedule.batch { #expect(client.get("/livez")?.status == 200) }
        if hangs { #expect(collector.waitForRequest()) }
        for _ in 0..<(ExportSchedule.mostWaiting + 10) { _ = client.get("/livez") }
        #expect(client.get("/livez")?.status == 200)
        let text = client.get("/metrics")?.body ?? ""
        #expect(text.contains("\ncountersign_spans_dropped_total "))
        if hangs { #expect(!text.contains("\ncountersign_spans_dropped_total 0\n")) }
    }

    @Test func closingDoesNotWaitForACollectorThatHangs() throws {
        let (isAsked, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let (resource, log) = (OTLPResource(url: ""), GatewayLog(level: .off))
        let exporter = TelemetryExporter(resource: resource, metrics: Metrics(), log: log) { _, _, _ in
            isAsked.signal()
            defer { isAsked.signal() }
            return OTLPAnswer(status: goesOn.wait(timeout: .now() + 30) == .success ? 200 : nil)
        }
        let gauges = Gauges(store: StoreLoad(), connections: 0, tokens: (0, 0, 0, 0), droppedLogLines: 0)
        exporter.start { gauges }
        for _ in 0..<ExportSchedule.batch { exporter.requestEnded(Traced.record()) }
        try isAsked.waitForSignal()
        exporter.close(within: 0.1)
        // The second signal would show that the request has ended.
        #expect(isAsked.wait(timeout: .now()) == .timedOut)
        goesOn.signal()
    }

    @Test func withoutACollectorNothingIsRecorded() throws {
        let fixture = try GatewayFixture(.standard)
        let answer = try fixture.client().get("/livez", headers: ["traceparent": Traced.caller])
        #expect(answer?.headers["traceresponse"]?.hasPrefix("00-0af7651916cd43dd8448eb211c80319c-") == true)
        #expect(try fixture.client().get("/livez")?.headers["traceresponse"] == nil)
        let text = try fixture.client().get("/metrics")?.body ?? ""
        #expect(!text.contains("\ncountersign_spans_dropped_total "))
    }
}
