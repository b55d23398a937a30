import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import Testing

/// Requests as Segment's Swift (1.9.4), JavaScript (@segment/analytics-next 1.84.1), Ruby and Python clients send them.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct SegmentClientsTests {
    private let fixture: GatewayFixture
    private let connection: any TestClient

    init() throws {
        fixture = try GatewayFixture(.standard, enforcement: .disabled)
        connection = try fixture.client()
    }

    private func stored() throws -> [[String?]] {
        try fixture.rows("type", "user_id", "anonymous_id", "name")
    }

    private func event(_ type: String, _ members: String) -> String {
        """
        {"type":"\(type)",\(members),"anonymousId":"a-1","messageId":"\(UUID().uuidString)",\
        "timestamp":"2026-11-21T08:30:00.250Z","context":{"library":{"name":"analytics-swift","version":"1.9.4"}},\
        "integrations":{},"_metadata":{"bundled":[],"bundledIds":[],"unbundled":[]}}
        """
    }

    /// The body is the client's file of events. The write key is at its end, and not in a header.
    @Test(arguments: ["/v1/b", "/v1/import"])
    func aMobileClientsBatchIsStored(path: String) throws {
        let events = [
            event("identify", #""userId":"user-1","traits":{"plan":"pro"}"#),
            event("track", #""userId":"user-1","event":"Order Placed","properties":{"total":12.5}"#),
        ]
        let body =
            #"{ "batch": [\#(events.joined(separator: ","))],"sentAt":"2026-11-21T08:31:00.000Z","#
            + #""writeKey":"\#(fixture.writeKey)"}"#
        let answer = connection.post(
            body, path: path,
            headers: [
                "Content-Type": "application/json; charset=utf-8", "User-Agent": "analytics-ios/1.9.4",
                "Accept-Encoding": "gzip",
            ])
        #expect(answer?.status == 200)
        #expect(
            try stored() == [
                ["identify", "user-1", "a-1", nil], ["track", "user-1", "a-1", "Order Placed"],
            ])
    }

    @Test(arguments: [
        ("t", "track", #""userId":null,"event":"Clicked""#),
        ("i", "identify", #""userId":"user-1","traits":{}"#),
        ("p", "page", #""userId":"user-1","name":"Home""#),
        ("s", "screen", #""userId":"user-1","name":"Home""#),
        ("g", "group", #""userId":"user-1","groupId":"g-1""#),
        ("a", "alias", #""userId":"user-1","previousId":"a-1""#),
    ])
    func aWebClientsEventIsStored(path: String, type: String, members: String) throws {
        let basic = Data((fixture.writeKey + ":").utf8).base64EncodedString()
        let answer = connection.post(
            String(event(type, members).dropLast()) + #","writeKey":"\#(fixture.writeKey)"}"#,
            path: "/v1/\(path)",
            headers: ["Content-Type": "text/plain", "Authorization": "Basic \(basic)", "X-Retry-Count": "1"])
        #expect(answer?.status == 200)
        #expect(try stored().map(\.first) == [type])
    }

    /// analytics-ruby 2.5 sends the application's user id unchanged, which is often a number.
    @Test func aNumericUserOfTheRubyClientIsStored() throws {
        let basic = Data((fixture.writeKey + ":").utf8).base64EncodedString()
        let answer = connection.post(
            #"{"sentAt":"2026-11-21T08:31:00.000Z","batch":[{"context":{"library":{"name":"analytics-ruby","version":"2.5.0"}},"#
                + #""messageId":"7f0e2f7c-2d2e-4c5b-9f0a-3c1f0a6f8f11","timestamp":"2026-11-21T08:30:00.000+00:00","#
                + #""userId":42,"type":"track","event":"Order Placed","properties":{},"integrations":{}}]}"#,
            headers: [
                "Content-Type": "application/json", "Authorization": "Basic \(basic)",
                "User-Agent": "analytics-ruby/2.5.0",
            ])
        #expect(answer?.status == 200)
        #expect(try stored() == [["track", "42", nil, "Order Placed"]])
    }

    /// Python's `json` escapes an unpaired surrogate, such as at the end of a truncated title.
    @Test func aBatchOfThePythonClientWithHalfAnEmojiIsStored() throws {
        let events = (0..<20).map { number in
            #"{"properties": {"title": "\#(number == 7 ? #"a\ud83d"# : "a")"}, "timestamp": "2026-11-21T08:30:00.250000+00:00","#
                + #" "context": {"library": {"name": "analytics-python", "version": "2.3.3"}}, "type": "track","#
                + #" "event": "Seen", "integrations": {}, "messageId": "m-\#(number)", "userId": "user-1","#
                + #" "anonymousId": null}"#
        }
        let answer = connection.post(
            #"{"batch": [\#(events.joined(separator: ", "))], "sentAt": "2026-11-21T08:31:00.000000+00:00", "writeKey": "\#(fixture.writeKey)"}"#,
            headers: ["Content-Type": "application/json", "User-Agent": "analytics-python/2.3.3"])
        #expect(answer?.json["accepted"] as? Int == 20)
        #expect(try stored().count == 20)
    }

    @Test func segmentSettingsPointClientsToTheGateway() throws {
        let host = "127.0.0.1:\(fixture.gateway.port)"
        let answer = try #require(
            connection.get("/v1/projects/\(fixture.writeKey)/settings", headers: ["Host": host]))
        #expect(answer.status == 200)
        let integrations = try #require(answer.json["integrations"] as? [String: [String: Any]])
        #expect(integrations.keys.sorted() == ["Segment.io"])
        let own = try #require(integrations["Segment.io"])
        #expect(own["apiKey"] as? String == fixture.writeKey)
        #expect(own["apiHost"] as? String == host + "/v1")
        #expect(own["protocol"] as? String == "http")
        // At another sample rate, clients send metrics about themselves to Segment.
        #expect((answer.json["metrics"] as? [String: Int])?["sampleRate"] == 0)
        let unknown = try #require(connection.get("/v1/projects/wk_nobody/settings"))
        #expect(unknown.status == 404)
        #expect(unknown.json["code"] as? String == "invalid_write_key")
    }

    @Test func unsupportedCustomerIORequestsAreExplained() throws {
        let answer = try #require(connection.send("PUT", "/api/v1/customers/5", [:], Array("{}".utf8)))
        #expect(answer.status == 400)
        #expect(
            (answer.json["meta"] as? [String: String])?["error"]?.contains("the Customer.io protocol") == true
        )
    }

    @Test(arguments: [
        ("/g/collect", "Google Analytics", "message"),
        ("/batch/", "PostHog", "detail"), ("/i/v0/e/", "PostHog", "detail"),
        ("/capture", "PostHog", "detail"),
        ("/capture/", "PostHog", "detail"), ("/decide", "PostHog", "detail"),
        ("/batch", "Amplitude or PostHog", "missing_field"), ("/batch", "Amplitude or PostHog", "detail"),
        ("/2/httpapi", "Amplitude", "error"), ("/track", "Mixpanel", "error"),
        ("/com.snowplowanalytics.snowplow/tp2", "Snowplow", "message"),
        ("/api/42/envelope/", "Sentry", "detail"), ("/api/42/envelope", "Sentry", "detail"),
        ("/api/42/store", "Sentry", "detail"), ("/httpapi", "Amplitude", "error"),
        ("/identify", "Amplitude", "missing_field"), ("/v1/traces", "OTLP", "message"),
    ])
    func unsupportedProtocolsAreNamedInTheResponse(path: String, name: String, member: String) throws {
        let answer = try #require(connection.post("{}", path: path))
        #expect(answer.status == 400)
        let sentence = "the \(name) protocol is not supported; send events to POST /v1/batch"
        #expect((answer.json[member] as? String)?.hasSuffix(sentence) == true)
        #expect(answer.json["success"] as? Bool == false)
        #expect(answer.json["code"] as? Int == 400)
        #expect(answer.json["status"] as? Int == 0)
    }
}
