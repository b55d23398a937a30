import CountersignCore
package import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import Testing

/// A form in which clients send events: the endpoints, the header fields, the event and the body around it.
///
/// Suites that check a rule of every dialect take ``all`` as arguments. `WireShapeTests` compares ``all`` with
/// the OpenAPI document.
package struct WireShape: Sendable, CustomTestStringConvertible {
    /// The names that the shapes of one dialect share.
    package struct Dialect: Sendable {
        /// The name in stored events.
        package let name: String
        /// The header field with the write key, and the text before the key; nil if there is only a token.
        package let key: (field: String, scheme: String)?
        package let token: (field: String, scheme: String)
        /// The member of an event with its time.
        package let time: String
        /// The members of an event with ids. The last is the message id.
        package let ids: [String]
        /// The members of a sample event without time and message id, with their JSON.
        let members: KeyValuePairs<String, String>

        /// The names of all members.
        package var names: [String] { Set(members.map(\.key) + ids + [time]).sorted() }
    }

    package let testDescription: String
    package let dialect: Dialect
    /// The endpoints, as in the OpenAPI document.
    package let paths: [String]
    /// Whether a body has exactly one event.
    package let isSingle: Bool
    /// The schema of the OpenAPI document with the maximum number of events; nil if `OpenAPILimitTests` skips the shape.
    package let limit: String?
    /// The parts of a body: before the first event, between the first two, between later ones, after the last.
    private let frame: [String]

    private init(
        _ name: String, _ dialect: Dialect, _ paths: [String], single: Bool = false, limit: String? = nil,
        _ frame: String...
    ) {
        testDescription = name
        self.dialect = dialect
        self.paths = paths
        isSingle = single
        self.limit = limit
        self.frame = frame
    }

    /// An event as JSON. `members` are added, or replace members of the same name.
    package func event(_ id: String, _ members: KeyValuePairs<String, String> = [:]) -> String {
        let own = dialect.members + [(dialect.ids.last ?? "", "\"\(id)\"")]
        let kept = own.filter { own in !members.contains { $0.key == own.0 } }
        return "{" + (kept + members).map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
    }

    package func body(_ events: [[UInt8]]) -> [UInt8] {
        var body = Array(frame[0].utf8)
        for (index, event) in events.enumerated() {
            if index > 0 { body += Array(frame[min(index, 2)].utf8) }
            body += event
        }
        return body + Array(frame[3].utf8)
    }

    package func body(_ events: String...) -> [UInt8] { body(events.map { Array($0.utf8) }) }

    /// The header fields with the write key and a token.
    package func headers(_ fixture: GatewayFixture, token: String?) -> [String: String] {
        var headers: [String: String] = [:]
        if let key = dialect.key { headers[key.field] = key.scheme + fixture.writeKey }
        if let token { headers[dialect.token.field] = dialect.token.scheme + token }
        return headers
    }

    /// Sends a body to an endpoint, by default the first. The request has a valid token if there is a user, or if
    /// the dialect has no write key.
    package func send(
        _ body: [UInt8], to fixture: GatewayFixture, _ client: any TestClient, at path: String? = nil,
        user: String? = nil
    ) throws -> TestAnswer {
        var token: String?
        if user != nil || dialect.key == nil {
            token = try fixture.signingKey.sign(claims: [
                "sub": .string(user ?? "user-1"), "aud": .string(fixture.appID), "jti": "t-1",
                "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
            ])
        }
        return try #require(
            client.send("POST", Self.target(path ?? paths[0]), headers(fixture, token: token), body))
    }

    /// The path with the id of a fixture's app as its parameter.
    package static func target(_ path: String) -> String {
        path.replacing("{token}", with: "shop").replacing("{project}", with: "shop")
    }
}

extension WireShape {
    private static let nativeDialect = Dialect(
        name: "native", key: ("X-Write-Key", ""), token: ("Authorization", "Bearer "), time: "timestamp",
        ids: ["userId", "anonymousId", "previousId", "groupId", "messageId"],
        // A group event, because only this kind requires and uses `groupId`.
        members: [
            "type": #""group""#, "event": #""e""#, "userId": #""user-1""#, "previousId": #""user-1""#,
            "groupId": #""g""#,
        ])
    private static let braze = Dialect(
        name: "braze", key: ("X-Braze-Api-Key", ""), token: ("X-Braze-Auth-Signature", ""), time: "time",
        ids: ["user_id", "external_id", "message_id"],
        members: ["name": #""e""#, "user_id": #""user-1""#])
    private static let geolocation = Dialect(
        name: "geolocation", key: nil, token: ("Authorization", "Bearer "), time: "timestamp", ids: ["uuid"],
        members: ["coords": #"{"latitude":1}"#])
    private static let bloomreach = Dialect(
        name: "bloomreach", key: ("Authorization", "Token "), token: ("X-Countersign-Signature", ""),
        time: "timestamp", ids: ["message_id"],
        members: [
            "customer_ids": #"{"registered":"user-1"}"#, "event_type": #""e""#,
            "url": #""https://a.example""#,
        ])

    private static let batches = ["/v1/batch", "/v1/b", "/v1/import"]
    private static let singles =
        ["track", "identify", "page", "screen", "group", "alias"].flatMap {
            ["/v1/\($0)", "/v1/\($0.prefix(1))"]
        }
    private static let data =
        ["data", "content_cards/sync", "feature_flags/sync", "template"].map { "/api/v3/" + $0 }
    private static let uploads = ["/api/locations", "/api/locations/{project}"]
    private static let tracking =
        ["customers", "customers/events", "campaigns/clicks"].map { "/track/v2/projects/{token}/" + $0 }

    package static let native = WireShape(
        "native batch", nativeDialect, batches, limit: "Batch/properties/batch",
        #"{"sentAt":"2026-11-21T08:30:00Z","batch":["#, ",", ",", "]}")
    package static let events = WireShape(
        "Braze events", braze, data, limit: "BrazeData/properties/events",
        #"{"device_id":"d","events":["#, ",", ",", "]}")
    package static let locations = WireShape(
        "locations", geolocation, uploads, #"{"location":["#, ",", ",", "]}")
    package static let tracked = WireShape("Bloomreach", bloomreach, tracking, single: true, "", "", "", "")

    package static let all: [WireShape] = [
        native, events, locations, tracked,
        WireShape("native, escaped", nativeDialect, batches, #"{"\u0062atch":["#, ",", ",", "]}"),
        WireShape("native event", nativeDialect, singles, single: true, "", "", "", ""),
        WireShape(
            "Braze attributes", braze, data, limit: "BrazeData/properties/attributes",
            #"{"events":[],"device_id":"d","attributes":["#, ",", ",", "]}"),
        WireShape(
            "Braze events and attributes", braze, data,
            #"{"device_id":"d","events":["#, #"],"attributes":["#, ",", "]}"),
        WireShape(
            "Braze events, escaped", braze, data, #"{"device_id":"d","\u0065v\u0065nts":["#, ",", ",", "]}"),
        WireShape("array of locations", geolocation, uploads, "[", ",", ",", "]"),
        WireShape("locations under another name", geolocation, uploads, #"{"points": [ "#, ",", ",", " ]}"),
        WireShape(
            "array with one list of locations", geolocation, uploads, #"[{"location":["#, ",", ",", "]}]"),
        WireShape(
            "lists of one location", geolocation, uploads,
            #"[{"location":["#, #"]},{"location":["#, #"]},{"location":["#, "]}]"),
        WireShape(
            "lists of locations", geolocation, uploads,
            #"[{"location":["#, #"]},{"location":["#, ",", "]}]"),
        WireShape("one location", geolocation, uploads, single: true, #"{"location":"#, "", "", "}"),
        WireShape("a bare location", geolocation, uploads, single: true, "", "", "", ""),
    ]

    /// The shapes whose bodies have any number of events.
    package static let lists = all.filter { !$0.isSingle }
}
