import CountersignGatewayTesting
import Foundation
import GatewayStorage
import GatewayTestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct BrazeDialectTests {
    private let fixture: GatewayFixture
    private let connection: any TestClient

    init() throws {
        fixture = try GatewayFixture(.standard)
        connection = try fixture.client()
    }

    private static let body = """
        {"api_key":null,"time":1795249800,"device_id":"device-1","sdk_version":"13.0.0","events":[
        {"name":"ce","data":{"n":"Order Placed","p":{"total":5}},"time":1795249790.5,"user_id":"user-1","session_id":"s"},
        {"name":"ss","data":{},"time":1795249791,"user_id":"user-1","session_id":"s"},
        {"name":"p","data":{"pid":"tea","c":"EUR","p":4.5,"q":2},"time":1795249792,"user_id":"user-1"}],
        "attributes":[{"user_id":"user-1","first_name":"Ada"}],"respond_with":{"user_id":"user-1"}}
        """

    private func post(_ body: String = body, token: String?) -> TestAnswer? {
        var headers = ["X-Braze-Api-Key": fixture.writeKey, "X-Braze-DataRequest": "true"]
        headers["X-Braze-Auth-Signature"] = token
        return connection.post(body, path: "/api/v3/data", headers: headers)
    }

    private func rows() throws -> [[String?]] {
        try fixture.rows("type", "user_id", "anonymous_id", "name", "timestamp_ms", "message_id")
    }

    @Test func eventsAndAttributesAreStored() throws {
        let answer = try #require(post(token: fixture.token(for: "user-1")))
        #expect(answer.status == 201)
        #expect(answer.body == #"{"message":"success","errors":[]}"# + "\n")
        let stored = try rows().map { $0.dropLast() }
        #expect(stored[0] == ["track", "user-1", "device-1", "Order Placed", "1795249790500"])
        #expect(stored[1] == ["track", "user-1", "device-1", "ss", "1795249791000"])
        #expect(stored[2] == ["track", "user-1", "device-1", "p", "1795249792000"])
        #expect(stored[3].dropLast() == ["identify", "user-1", "device-1", nil])
    }

    @Test func aRepeatedRequestStoresNothingButEqualEventsInOneAreBothStored() throws {
        let token = try fixture.token(for: "user-1")
        _ = post(token: token)
        #expect(post(token: token)?.status == 201)
        #expect(try rows().count == 4)
        let event = #"{"name":"ss","time":5,"user_id":"user-1"}"#
        _ = post(#"{"device_id":"d","events":[\#(event),\#(event)]}"#, token: token)
        #expect(Set(try rows().map(\.last)).count == 6)
        // An upgrade must not change derived ids. Otherwise a repeated request would store its events twice.
        #expect(try rows().last?.last == "sha256-49445204212fb48f1817ea47ae28cbee-1")
    }

    /// The status is 201, because 401 is the only error for which the behaviour of shipped clients is documented.
    @Test func aRequestWithOnlyRejectedEventsReportsNoSuccess() throws {
        let token = try fixture.token(for: "user-1")
        let bad = #"{"time":5,"user_id":"user-1"}"#
        let good = #"{"name":"ss","time":5,"user_id":"user-1"}"#
        let unnamed = #"{"name":"ce","data":{"n":""},"time":5,"user_id":"user-1"}"#
        let answer = try #require(post(#"{"device_id":"d","events":[\#(bad),\#(unnamed)]}"#, token: token))
        #expect(answer.status == 201)
        #expect(answer.json["message"] as? String == "every event was rejected; see errors")
        #expect(answer.json["code"] as? String == "all_events_rejected")
        #expect((answer.json["errors"] as? [Any])?.count == 2)
        // A valid event, attributes or an empty batch make the request succeed.
        for body in [
            #"{"device_id":"d","events":[\#(bad),\#(good)]}"#,
            #"{"device_id":"d","events":[\#(bad)],"attributes":[{"user_id":"user-1","first_name":"Ada"}]}"#,
            #"{"device_id":"d","events":[]}"#,
        ] {
            let answer = try #require(post(body, token: token))
            #expect(answer.status == 201)
            #expect(answer.json["message"] as? String == "success", "\(body)")
            #expect(answer.json["code"] == nil)
        }
    }

    @Test(arguments: [
        (#"{"user_id":"user-1","first"#, #"{"user_id":"user-2","first"#),
        (#""respond_with":{"user_id":"user-1"}"#, #""respond_with":{"user_id":"user-2"}"#),
    ])
    func aTokenOfOneUserIsRejectedInARequestOfTwoUsers(one: String, two: String) throws {
        let body = Self.body.replacingOccurrences(of: one, with: two)
        let answer = try #require(post(body, token: fixture.token(for: "user-1")))
        #expect(answer.status == 401)
        let error = try #require(answer.json["auth_error"] as? [String: Any])
        #expect(error["error_code"] as? Int == 28)
        #expect(error["reason"] is String)
        let found = try fixture.place.connection(to: "events").first("SELECT 1 FROM customer") { $0.int(0) }
        #expect(try rows().isEmpty && found == nil)
    }

    @Test func anUnknownKeyAndAnInvalidBodyAreRejectedWithACode() throws {
        let unknown = connection.post("{}", path: "/api/v3/data", headers: ["X-Braze-Api-Key": "nobody"])
        #expect(unknown?.json["code"] as? String == "invalid_api_key")
        // The body of a request with an unknown API key is not read.
        let unread = connection.post("{", path: "/api/v3/data", headers: ["X-Braze-Api-Key": "nobody"])
        #expect(unread?.json["code"] as? String == "invalid_api_key")
        // Nor are the events of a body with an unknown key.
        let undecoded = connection.post(
            #"{"api_key":"nobody","events":{}}"#, path: "/api/v3/data", headers: [:])
        #expect(undecoded?.json["code"] as? String == "invalid_api_key")
        let bad = connection.post(
            #"{"events":{}}"#, path: "/api/v3/data", headers: ["X-Braze-Api-Key": fixture.writeKey])
        #expect(bad?.json["code"] as? String == "invalid_batch")
        let list = connection.post("[]", path: "/api/v3/data", headers: ["X-Braze-Api-Key": fixture.writeKey])
        #expect(list?.json["code"] as? String == "invalid_batch")
        let two = connection.post(
            #"{"api_key":"another","events":[]}"#, path: "/api/v3/data",
            headers: ["X-Braze-Api-Key": fixture.writeKey])
        #expect(two?.status == 400)
        #expect(two?.json["code"] as? String == "invalid_credentials")
        #expect(post(#"{"events":null,"attributes":null}"#, token: nil)?.status == 201)
    }

    @Test func aBadEventIsRejectedAlone() throws {
        let long = String(repeating: "x", count: 513)
        let events = [
            "5", #"{"name":"ss"}"#, #"{"name":"","user_id":"user-1"}"#,
            #"{"name":"ss","user_id":"user-1","message_id":[7]}"#,
            #"{"name":"ss","user_id":"user-1","message_id":"\#(long)"}"#,
            #"{"name":"ss","user_id":"\#(long)"}"#, #"{"name":"ss","user_id":"user-1","external_id":7.5}"#,
            #"{"name":"ss","user_id":"user-1"}"#,
        ]
        let answer = try #require(
            post(#"{"events":[\#(events.joined(separator: ","))]}"#, token: fixture.token(for: "user-1")))
        #expect((answer.json["errors"] as? [Any])?.count == 7)
        #expect(try rows().map { $0[1] } == ["user-1"])
        let attributes = #"{"device_id":"d","attributes":[5,{"user_id":"user-1","first_name":"Ada"}]}"#
        let other = try #require(post(attributes, token: fixture.token(for: "user-1")))
        #expect((other.json["errors"] as? [Any])?.count == 1)
        #expect(try rows().count == 2)
    }

    /// Endpoints for features that the gateway lacks. They check key and token, and reply with empty results.
    @Test(arguments: [
        ("content_cards/sync", #""cards":[]"#), ("feature_flags/sync", #""feature_flags":[]"#),
        ("template", #""templated_message":null"#),
    ])
    func unsupportedResourcesAreAnsweredEmpty(path: String, expected: String) throws {
        let body = #"{"device_id":"device-1","user_id":"user-1","last_full_sync_at":0}"#
        func ask(_ token: String?, key: String? = nil) throws -> TestAnswer {
            var headers = ["X-Braze-Api-Key": key ?? fixture.writeKey]
            headers["X-Braze-Auth-Signature"] = token
            return try #require(connection.post(body, path: "/api/v3/" + path, headers: headers))
        }
        let answer = try ask(try fixture.token(for: "user-1"))
        #expect(answer.status == 201 && answer.body.contains(expected))
        #expect(try ask(try fixture.token(for: "user-2")).status == 401)
        #expect(try ask(nil, key: "unknown").status == 401)
        #expect(try rows().isEmpty)
    }

    @Test func triggersAreAnEmptyList() throws {
        let body = Self.body.replacing(
            #""respond_with":{"user_id":"user-1"}"#,
            with: #""respond_with":{"user_id":"user-1","triggers":true}"#)
        let answer = try #require(post(body, token: fixture.token(for: "user-1")))
        #expect(answer.body == #"{"message":"success","errors":[],"triggers":[]}"# + "\n")
    }
}
