import CountersignCore
import Foundation
import Testing

@testable import BrazeCompat
@testable import Countersign
@testable import CountersignDelivery
@testable import CountersignTransport

struct BrazeDialectTests {
    private func dialect() throws -> BrazeDialect {
        var context = EventContext()
        context.parts = [.app]
        context.appVersion = "2.1"
        return BrazeDialect(
            endpoint: try #require(URL(string: "https://sdk.example.com")), apiKey: "key", timeout: 30,
            context: context)
    }

    private func credential(signs: Bool) -> Credential {
        let configuration = Braze.Configuration(apiKey: "key", endpoint: "sdk.example.com")
        configuration.api.sdkAuthentication = signs
        return Credential(configuration.scheme, token: SignedToken("a.b.c"))
    }

    private func record(_ dialect: BrazeDialect) -> EventRecord {
        EventRecord(
            content: Event(.track, name: "bought", payload: ["price": 1.5], dialect: dialect),
            messageID: "m1", userID: "ada", sessionID: "s1",
            timestamp: Date(timeIntervalSince1970: 1_700_000_000.25))
    }

    @Test func requestIsByteForByteAsExpected() throws {
        let dialect = try dialect()
        let record = record(dialect)
        let body = record.content.rendered(for: record, anonymousID: "device")
        let event = QueuedEvent(sequence: 1, messageID: "m1", userID: "ada", body: body)
        let request = credential(signs: true).applied(
            to: dialect.request(
                for: [event], attempt: 2, deviceID: "device",
                now: Date(timeIntervalSince1970: 1_700_000_001)))
        #expect(request.url.absoluteString == "https://sdk.example.com/api/v3/data")
        #expect(
            request.headers.map { "\($0.name): \($0.value)" } == [
                "Content-Type: application/json", "X-Braze-Api-Key: key", "X-Braze-DataRequest: true",
                "X-Braze-Req-Attempt: 2", "X-Braze-Auth-Signature: a.b.c",
            ])
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == #"{"api_key":"key","device_id":"device","events":[{"context":{"app":{"version":"2.1"},"library":{"name":"countersign-swift","version":"0.1.0"}},"data":{"n":"bought","p":{"price":1.5}},"message_id":"m1","name":"ce","session_id":"s1","time":1700000000.25,"user_id":"ada"}],"respond_with":{"user_id":"ada"},"app_version":"2.1","sdk_flavor":"countersign-swift","sdk_version":"0.1.0","time":1700000001}"#
        )
    }

    @Test func deepPropertiesAreCutToTheGatewaysDepthLimit() throws {
        let dialect = try dialect()
        let deep = (0..<1_000).reduce(JSONValue.integer(1)) { inner, _ in ["a": inner] }
        for kind in [EventKind.track, .purchase, .userAttributes] {
            let record = EventRecord(
                content: Event(kind, name: "deep", payload: ["deep": deep], dialect: dialect),
                messageID: "m1",
                userID: "ada", sessionID: "s1", timestamp: Date())
            let event = QueuedEvent(
                sequence: 1, messageID: "m1", userID: "ada",
                body: record.content.rendered(for: record, anonymousID: "device"))
            let body = dialect.request(for: [event], attempt: 1, deviceID: "device", now: Date()).body
            // The batch, its array and an event are three levels; the data of a tracked event is one more.
            var (level, levels) = (1, 1)
            for byte in body where byte == UInt8(ascii: "{") || byte == UInt8(ascii: "}") {
                level += byte == UInt8(ascii: "{") ? 1 : -1
                levels = max(levels, level)
            }
            #expect((60...65).contains(levels), "\(levels)")
        }
    }

    @Test func noSignatureIsSentUnlessSDKAuthenticationIsOn() throws {
        let event = QueuedEvent(sequence: 1, messageID: "m1", userID: nil, body: Array("{}".utf8))
        let request = credential(signs: false).applied(
            to: try dialect().request(for: [event], attempt: 1, deviceID: "d", now: Date()))
        #expect(request.header("X-Braze-Auth-Signature") == nil)
        #expect(String(decoding: request.body, as: UTF8.self).contains("respond_with") == false)
    }

    @Test(arguments: [
        (201, #"{"message":"success"}"#, "accepted"),
        (201, #"{"message":"success","errors":[]}"#, "accepted"),
        (
            201,
            #"{"message":"every event was rejected; see errors","code":"all_events_rejected","errors":[{"index":0,"code":"x"},{"index":1,"code":"x"}]}"#,
            "accepted"
        ), (201, #"{"message":"welcome"}"#, "notUnderstood"), (201, "", "notUnderstood"),
        (200, "<html>", "tryLater"),
        (201, #"{"message":"success","errors":[{"index":7,"code":"x"}]}"#, "notUnderstood"),
        (401, #"{"auth_error":{"error_code":22,"reason":null}}"#, "tokenProblem"),
        (200, #"{"auth_error":{"error_code":27}}"#, "tokenProblem"),
        (401, #"{"success":false,"code":"invalid_api_key"}"#, "configurationProblem"),
        (400, #"{"success":false,"code":"invalid_batch"}"#, "rejected"), (500, "", "serverFault"),
    ])
    func responsesAreClassifiedByStatusAndBody(status: Int, body: String, meaning: String) throws {
        let rows = (1...2).map {
            QueuedEvent(
                sequence: Int64($0), messageID: "m\($0)", userID: nil, body: Array(#"{"data":{}}"#.utf8))
        }
        let answer = try dialect().read(TransportResponse(status: status, body: Array(body.utf8)), for: rows)
        #expect("\(answer.meaning)".hasPrefix(meaning), "\(answer.meaning)")
    }

    @Test func valuesOfAnyTypeBecomeJSON() {
        let value = JSONValue(
            any: [
                "s": "x", "i": 3, "u": UInt64.max, "d": 1.5, "b": true, "a": [1, "two", Data()] as [Any],
                "t": Date(timeIntervalSince1970: 0),
            ] as [String: Any])
        #expect(
            value
                == .object([
                    "s": "x", "i": 3, "u": "18446744073709551615", "d": 1.5, "b": true, "a": [1, "two", ""],
                    "t": "1970-01-01T00:00:00.000Z",
                ]))
    }

    /// A request lists attributes after events, independent of their order in the queue.
    @Test func rejectedIndicesMapToTheRowsInRequestOrder() throws {
        let dialect = try dialect()
        let attributes = EventRecord(
            content: Event(.userAttributes, name: nil, payload: ["email": "a@b"], dialect: dialect),
            messageID: "a1", userID: "ada", sessionID: "s1", timestamp: Date(timeIntervalSince1970: 1))
        let rows = [attributes, record(dialect), attributes].enumerated().map { index, record in
            QueuedEvent(
                sequence: Int64(index), messageID: record.messageID, userID: "ada",
                body: record.content.rendered(for: record, anonymousID: "device"))
        }
        let request = dialect.request(
            for: rows, attempt: 1, deviceID: "device", now: Date(timeIntervalSince1970: 1))
        let body = try #require(
            JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any])
        #expect((body["events"] as? [Any])?.count == 1)
        #expect((body["attributes"] as? [[String: Any]])?.map { $0["email"] as? String } == ["a@b", "a@b"])

        let text = #"{"message":"success","errors":[{"index":1,"code":"invalid_event"}]}"#
        let answer = dialect.read(TransportResponse(status: 201, body: Array(text.utf8)), for: rows)
        guard case .accepted(_, let rejected, _) = answer.meaning else {
            Issue.record("\(answer.meaning)")
            return
        }
        #expect(rejected.map(\.index) == [0], "the first attributes")
    }
}
