internal import Countersign
internal import CountersignCore
internal import CountersignDelivery
internal import CountersignTransport
internal import Foundation

/// `POST /api/v3/data`, as Braze's SDKs send it.
struct BrazeDialect: EventDialect {
    private let url: URL
    private let apiKey: String
    private let timeout: TimeInterval
    private let context: EventContext
    /// An addition to Braze's format: the app's version, the operating system, the device's model and the locale.
    private let facts: JSONValue

    init(endpoint: URL, apiKey: String, timeout: TimeInterval, context: EventContext) {
        self.context = context
        facts = .object(context.json)
        url = endpoint.appendingPathComponent("api/v3/data")
        self.apiKey = apiKey
        self.timeout = timeout
    }

    func render(_ event: Event, of record: EventRecord, anonymousID: String) -> [UInt8] {
        var members = event.payload
        if event.kind == .userAttributes {
            // An addition to Braze's format: the idempotency key of a repeated request.
            members["message_id"] = .string(record.messageID)
            if let userID = record.userID { members["user_id"] = .string(userID) }
            return JSONValue.object(members).bytes
        }
        if event.kind == .track {
            members = ["n": .string(event.name ?? "")]
            if !event.payload.isEmpty { members["p"] = .object(event.payload) }
        }
        var object: JSONObject = [
            "name": .string(event.kind == .track ? "ce" : event.kind.rawValue), "data": .object(members),
            "session_id": .string(record.sessionID),
            "time": .number(Milliseconds(record.timestamp).seconds),
            "message_id": .string(record.messageID), "context": facts,
        ]
        if let userID = record.userID { object["user_id"] = .string(userID) }
        return JSONValue.object(object).bytes
    }

    /// The possible first bytes of an event. Members are sorted by name, and events of earlier versions have no
    /// `context`. User attributes start with other members.
    private static let eventHeads = [Array(#"{"context":"#.utf8), Array(#"{"data":"#.utf8)]

    private static func isEvent(_ row: QueuedEvent) -> Bool {
        eventHeads.contains { row.body.starts(with: $0) }
    }

    /// The indices in `rows` of events and of user attributes, in their order in the request.
    private static func places(of rows: [QueuedEvent]) -> (events: [Int], attributes: [Int]) {
        (
            rows.indices.filter { isEvent(rows[$0]) }, rows.indices.filter { !isEvent(rows[$0]) }
        )
    }

    func request(
        for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date
    ) -> TransportRequest {
        var body = Array(#"{"api_key":"#.utf8)
        JSONValue.write(apiKey, to: &body)
        body.append(contentsOf: #","device_id":"#.utf8)
        JSONValue.write(deviceID, to: &body)
        let places = Self.places(of: events)
        func write(_ name: String, _ rows: [Int]) {
            body.append(contentsOf: #","\#(name)":["#.utf8)
            for (index, row) in rows.enumerated() {
                if index > 0 { body.append(UInt8(ascii: ",")) }
                body.append(contentsOf: events[row].body)
            }
            body.append(UInt8(ascii: "]"))
        }
        write("events", places.events)
        if !places.attributes.isEmpty { write("attributes", places.attributes) }
        if let userID = events.first?.userID {
            body.append(contentsOf: #","respond_with":{"user_id":"#.utf8)
            JSONValue.write(userID, to: &body)
            body.append(UInt8(ascii: "}"))
        }
        let members = [("app_version", "app_version"), ("sdk_flavor", "sdk"), ("sdk_version", "sdk_version")]
        for (name, property) in members {
            guard let value = context.properties[property] else { continue }
            body.append(contentsOf: #","\#(name)":"#.utf8)
            value.write(to: &body)
        }
        body.append(contentsOf: #","time":\#(Int64(now.timeIntervalSince1970))}"#.utf8)

        let headers = [
            (name: "Content-Type", value: "application/json"),
            (name: "X-Braze-Api-Key", value: apiKey),
            (name: "X-Braze-DataRequest", value: "true"),
            (name: "X-Braze-Req-Attempt", value: "\(attempt)"),
        ]
        var request = TransportRequest(url: url, headers: headers, body: body, timeout: timeout)
        request.isCompressible = true
        return request
    }

    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer {
        let places = Self.places(of: events)
        let order = places.events + places.attributes
        return ServerAnswerBody(response).answer(to: response, eventCount: events.count) { body in
            guard body.message == "success" || body.rejectsEverything || response.status == 400 else {
                return nil
            }
            let errors = body.errors ?? []
            guard errors.allSatisfy({ order.indices.contains($0.index) }) else { return nil }
            return body.accepted(
                count: events.count - errors.count, duplicates: 0,
                rejected: errors.map { $0.moved(to: order[$0.index]) }, eventCount: events.count)
        }
    }
}

extension EventKind {
    static let sessionStart = EventKind(rawValue: "ss")
    static let sessionEnd = EventKind(rawValue: "se")
    static let purchase = EventKind(rawValue: "p")
    /// Sent in a separate list of the request.
    static let userAttributes = EventKind(rawValue: "attributes")
}
