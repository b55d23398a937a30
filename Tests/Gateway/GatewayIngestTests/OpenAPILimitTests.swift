import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import Testing

/// Requests are limited as `/openapi.json` documents.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct OpenAPILimitTests {
    private let client: BloomreachClient
    private let schemas: [String: Any]

    init() throws {
        client = try BloomreachClient()
        let answer = client.connection.get("/openapi.json")
        let components = answer?.json["components"] as? [String: Any]
        schemas = try #require(components?["schemas"] as? [String: Any])
    }

    /// The number at a path below the document's schemas.
    private func limit(_ path: String) throws -> Int {
        let value = path.split(separator: "/").reduce(schemas as Any?) { value, name in
            (value as? [String: Any])?[String(name)]
        }
        return try #require(value as? Int, "\(path)")
    }

    /// Expects that a value at the limit is accepted, and that a value longer by one is rejected.
    private func expect(
        _ path: String, _ location: SourceLocation = #_sourceLocation, isTaken: (Int) throws -> Bool
    ) throws {
        let limit = try limit(path)
        #expect(try isTaken(limit), "\(path): \(limit) is rejected", sourceLocation: location)
        #expect(try !isTaken(limit + 1), "\(path): \(limit + 1) is accepted", sourceLocation: location)
    }

    private func text(_ length: Int) -> String { String(repeating: "x", count: length) }

    private func list(_ element: String, _ count: Int) -> String {
        "[" + Array(repeating: element, count: count).joined(separator: ",") + "]"
    }

    @Test(arguments: ["messageId", "userId", "anonymousId", "previousId", "groupId"])
    func nativeIDsHaveTheDocumentedMaximumLength(member: String) throws {
        try expect("Event/properties/\(member)/maxLength") { length in
            var event = [
                "type": member == "groupId" ? "group" : "alias", "userId": "u", "previousId": "p",
            ]
            event[member] = text(length)
            let body = try JSONSerialization.data(withJSONObject: ["batch": [event]])
            let answer = client.connection.post(
                String(decoding: body, as: UTF8.self), headers: ["X-Write-Key": client.fixture.writeKey])
            return answer?.json["accepted"] as? Int == 1
        }
    }

    @Test(arguments: WireShape.lists.filter { $0.limit != nil })
    func batchesHaveTheDocumentedMaximumLength(shape: WireShape) throws {
        try expect((shape.limit ?? "") + "/maxItems") { count in
            let events = (0..<count).map { Array(shape.event("m-\($0)").utf8) }
            return try (200...201).contains(
                shape.send(shape.body(events), to: client.fixture, client.connection).status)
        }
    }

    private func isTaken(_ path: String, _ body: String) -> Bool {
        client.post(path, body)?.status == 200
    }

    private static let tracking = "/track/v2/projects/{p}"
    private static let content = "/data/v2/projects/{p}"
    private static let inbox = "/webxp/projects/{p}/appinbox"

    @Test func bloomreachIDsHaveTheDocumentedLimits() throws {
        try expect("CustomerIDs/additionalProperties/maxLength") {
            isTaken(Self.tracking + "/customers", #"{"customer_ids":{"cookie":"\#(text($0))"}}"#)
        }
        try expect("CustomerIDs/propertyNames/maxLength") {
            isTaken(Self.tracking + "/customers", #"{"customer_ids":{"\#(text($0))":"a"}}"#)
        }
        try expect("CustomerIDs/maxProperties") { count in
            let ids = (1...count).map { #""n\#($0)":"a""# }.joined(separator: ",")
            return isTaken(Self.tracking + "/customers", #"{"customer_ids":{\#(ids)}}"#)
        }
    }

    @Test func bloomreachEventsHaveTheDocumentedMaximumLengths() throws {
        try expect("CustomerEvent/properties/event_type/maxLength") {
            isTaken(
                Self.tracking + "/customers/events",
                #"{"customer_ids":{"cookie":"c"},"event_type":"\#(text($0))"}"#)
        }
        try expect("CustomerEvent/properties/message_id/maxLength") {
            isTaken(
                Self.tracking + "/customers/events",
                #"{"customer_ids":{"cookie":"c"},"event_type":"e","message_id":"\#(text($0))"}"#)
        }
        try expect("CampaignClick/properties/url/maxLength") {
            isTaken(Self.tracking + "/campaigns/clicks", #"{"url":"\#(text($0))"}"#)
        }
    }

    @Test func bloomreachListsHaveTheDocumentedMaximumLengths() throws {
        try expect("AttributesRequest/properties/attributes/maxItems") {
            isTaken(
                Self.content + "/customers/attributes",
                #"{"customer_ids":{"cookie":"c"},"attributes":\#(list(#"{"type":"id","id":"cookie"}"#, $0))}"#
            )
        }
        try expect("InboxMark/properties/message_ids/maxItems") {
            isTaken(
                Self.inbox + "/markasread",
                #"{"customer_ids":{"cookie":"c"},"sync_token":null,"message_ids":\#(list(#""m""#, $0))}"#)
        }
    }

    /// The project has no push webhook. The gateway reports this as 409 after validating the request.
    @Test(arguments: ["platform", "push_notification_id"])
    func bloomreachSelfChecksHaveTheDocumentedMaximumLengths(member: String) throws {
        try expect("SelfCheck/properties/\(member)/maxLength") {
            var body =
                [
                    "platform": "ios", "push_notification_id": "p", "customer_ids": ["cookie": "c"],
                ] as [String: Any]
            body[member] = text($0)
            let json = try JSONSerialization.data(withJSONObject: body)
            return client.post(
                "/campaigns/send-self-check-notification?project_id=\(client.project)",
                String(decoding: json, as: UTF8.self))?.status == 409
        }
    }
}
