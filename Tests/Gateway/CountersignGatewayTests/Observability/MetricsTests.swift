import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayHTTP
@testable import GatewayModel
@testable import GatewayObservability

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct MetricsTests {
    /// Parses the samples of a metrics text, by name and labels.
    private func samples(_ text: String) -> [String: Double] {
        var samples: [String: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " ") else { continue }
            samples[String(line[..<space])] = Double(line[line.index(after: space)...])
        }
        return samples
    }

    @Test(arguments: [("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=192.0.2.1"), ("Via", "1.1 proxy")])
    func metricsAreNotServedThroughAProxy(name: String, value: String) throws {
        let fixture = try GatewayFixture(.standard)
        let connection = try fixture.client()
        #expect(connection.get("/metrics", headers: [name: value])?.status == 403)
        #expect(connection.get("/metrics")?.status == 200)
    }

    @Test func everyRequestVerdictAndEventIsCounted() throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let connection = try RawConnection(port: fixture.gateway.port)
        let token = try fixture.token(for: "user-1")
        let good = ["X-Write-Key": fixture.writeKey, "Authorization": "Bearer \(token)"]
        let two = batch(trackEvent("m-1"), trackEvent("m-2"))
        #expect(connection.post(two, headers: good)?.status == 200)
        #expect(connection.post(two, headers: good)?.status == 200)
        #expect(connection.post(batch(#"{"type":"nonsense"}"#), headers: good)?.status == 400)
        #expect(connection.post(two, headers: ["X-Write-Key": fixture.writeKey])?.status == 401)
        #expect(connection.get("/secret-\(UUID().uuidString)")?.status == 404)
        #expect(connection.get("/other")?.status == 404)
        let text = try #require(connection.get("/metrics")?.body)
        let samples = samples(text)
        func value(_ name: String, _ labels: String) -> Double? { samples["countersign_\(name){\(labels)}"] }
        let requests = "requests_total"
        #expect(value(requests, #"app="shop",route="/v1/batch",status="2xx""#) == 2)
        #expect(value(requests, #"app="shop",route="/v1/batch",status="4xx""#) == 2)
        #expect(value(requests, #"app="",route="unmatched",status="4xx""#) == 2)
        #expect(value("events_total", #"app="shop",outcome="accepted""#) == 2)
        #expect(value("events_total", #"app="shop",outcome="duplicate""#) == 2)
        #expect(value("events_total", #"app="shop",outcome="rejected""#) == 1)
        let accepted = #"app="shop",mode="required",result="accepted",reason="""#
        let rejected = #"app="shop",mode="required",result="rejected",reason="MISSING_TOKEN""#
        #expect(value("auth_results_total", accepted) == 2)
        #expect(value("auth_results_total", rejected) == 1)
        #expect(samples["countersign_batch_events_count"] == 2)
        #expect(samples["countersign_batch_events_sum"] == 4)
        #expect(value("request_duration_seconds_count", #"route="/v1/batch""#) == 4)
        #expect(value("token_lookups_total", #"result="miss""#) == 1)
        #expect(value("token_lookups_total", #"result="hit""#) == 1)
        #expect(samples["countersign_remembered_tokens"] == 1)
        #expect((samples["countersign_remembered_tokens_bytes"] ?? 0) > 500)
        #expect((samples["countersign_store_bytes"] ?? 0) > 0)
        // The gateway cannot read the free disk space of a database server.
        let free = samples["countersign_disk_free_bytes"]
        #expect(TestEngine.standard == .sqlite ? free ?? 0 > 0 : free == nil)
        #expect(samples["countersign_connections"] == 1)
        // The document lists exactly these metrics.
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../../docs/reference/metrics.md").standardizedFileURL
        let rows = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            .filter { $0.hasPrefix("| `countersign_") }
        let nouns = ["consumer", "webhook", "stream", "sink", "files"]
        let documented = rows.flatMap { row -> [String] in
            let name = String(row.split(separator: "`")[1])
            return nouns.map { name.replacing("WAY", with: $0) }
        }
        // Consumers fetch events, so no delivery can fail.
        .filter { $0 != "countersign_consumer_failing" }
        let types = text.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }
        #expect(Set(documented) == Set(types.map { String($0.split(separator: " ")[2]) }))
        // Values sent by clients are never labels.
        #expect(!text.contains("secret-"))
        #expect(!text.contains(fixture.writeKey))
    }

    private func samples(
        freeBytes: Int? = nil, lags: [Gauges.Lag] = [], ways: [Gauges.Way] = []
    ) -> [String: Double] {
        let gauges = Gauges(
            store: StoreLoad(freeBytes: freeBytes), connections: 0, tokens: (0, 0, 0, 0), droppedLogLines: 0,
            lags: lags, ways: ways)
        return samples(String(decoding: Metrics().text(gauges), as: UTF8.self))
    }

    @Test func unknownValuesHaveNoSample() {
        #expect(samples(freeBytes: 7)["countersign_disk_free_bytes"] == 7)
        #expect(samples(freeBytes: nil)["countersign_disk_free_bytes"] == nil)
    }

    @Test func lagMetricsAreNamedAndLabelledByTheKindOfConsumer() {
        let ids = EventConsumerID.Kind.allCases.map {
            EventConsumerID(appID: "shop", kind: $0, name: $0.rawValue)
        }
        let found = samples(
            lags: ids.map { ($0, 7, 8, EventGap(isOpen: true)) }, ways: ids.map { ($0, 9, true) })
        let stream = ["failing 1", "published_total 9"]
        let expected = [
            ("stream", "sink", stream), ("sink", "sink", stream), ("webhook", "webhook", ["failing 1"]),
            ("files", "file", ["failing 1"]), ("consumer", "pull", ["oldest_unread_seconds 8"]),
        ].flatMap { noun, name, values -> [String] in
            let all = ["lag_events 7", "lag_seconds 8", "events_missed 1"] + values
            return all.map { #"countersign_\#(noun)_\#($0) app="shop",\#(noun)="\#(name)""# }
        }
        let written = found.filter { $0.key.contains("shop") }.map { key, value in
            let parts = key.dropLast().split(separator: "{")
            return "\(parts[0]) \(Int(value)) \(parts[1])"
        }
        #expect(written.sorted() == expected.sorted())
    }

    @Test func eachOfManyConsumersHasItsLag() throws {
        let fixture = try GatewayFixture(.standard)
        // PostgreSQL's table has no column `generation`.
        let (column, value) = TestEngine.standard == .sqlite ? (", generation", ", 0") : ("", "")
        try fixture.place.connection(to: "events").execute(
            """
            INSERT INTO event_consumer (app_id, kind, name, created_ms\(column))
            WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1025)
            SELECT 'shop', 'pull', 'c-' || n, 1\(value) FROM number;
            INSERT INTO event_consumer_position (app_id, kind, name, partition, seq)
            SELECT app_id, kind, name, 0, 0 FROM event_consumer WHERE kind = 'pull'
            """)
        let text = try #require(fixture.client().get("/metrics")?.body)
        let lags = text.split(separator: "\n").filter { $0.hasPrefix("countersign_consumer_lag_events{") }
        #expect(lags.count == 1_025)
    }

    @Test func aRequestThatTheClientAbandonsIsCountedWithoutStatus() throws {
        let observer = RequestRecorder()
        let server = HTTPServer(limits: GatewayLimits(), observer: observer) { _ in .answer(.text(200, "")) }
        let port = try server.start(host: "127.0.0.1", port: 0)
        defer { server.stop(graceSeconds: 0) }
        do {
            let connection = try RawConnection(port: port)
            connection.send(
                "POST /v1/batch HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            #expect(connection.answer()?.status == 100)
        }
        let record = observer.next()
        #expect(record?.status == nil)
        #expect(record?.path == "/v1/batch")
    }

    @Test func labelsAreEscaped() {
        let text = PrometheusText([
            MetricFamily("countersign_test", .gauge, "Test.", [([("app", "a\"b\\c\nd")], 1.5)])
        ])
        let expected = #"""
            # HELP countersign_test Test.
            # TYPE countersign_test gauge
            countersign_test{app="a\"b\\c\nd"} 1.5

            """#
        let written = String(decoding: text.bytes, as: UTF8.self)
        #expect(written == expected)
    }

    @Test func aHistogramCountsUpToEachBound() {
        var histogram = Histogram([1, 2])
        for value in [0.5, 1, 1.5, 7] { histogram.observe(value) }
        let text = PrometheusText([MetricFamily("h", "H.", histograms: [([], histogram)])])
        let lines = String(decoding: text.bytes, as: UTF8.self).split(separator: "\n").dropFirst(2)
        let expected: [Substring] = [
            #"h_bucket{le="1"} 2"#, #"h_bucket{le="2"} 3"#, #"h_bucket{le="+Inf"} 4"#, "h_sum 10",
            "h_count 4",
        ]
        #expect(Array(lines) == expected)
    }
}
