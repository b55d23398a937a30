import Countersign
import CountersignCore
import CountersignTransport
import Foundation

/// The parts of a request that scenarios check, for all kinds of client.
struct ReceivedRequest: Sendable {
    struct Event: Sendable {
        let id: String
        let name: String
    }

    let isForTokens: Bool
    /// Whether a success response reports the result of each event.
    let saysCounts: Bool
    let events: [Event]
    let refreshToken: String?
    /// The JSON that `requests` of an expectation is compared with.
    let observed: JSONValue

    init(_ request: TransportRequest, at elapsed: TimeInterval) {
        let body = JSONDocument.value(request.body) ?? .null
        isForTokens = request.url.absoluteString == ScenarioServer.tokenURL
        let text = String(decoding: request.body, as: UTF8.self)
        refreshToken = isForTokens ? text.split(separator: "=").last.map(String.init) : nil
        var members: JSONObject = ["at": .number(elapsed), "path": .string(request.url.path)]
        if let batch = body["batch"]?.array {
            saysCounts = true
            events = batch.map { event in
                let name = event["event"]?.string ?? event["type"]?.string ?? ""
                return Event(id: event["messageId"]?.string ?? "", name: name)
            }
            members["user"] = batch.first?["userId"] ?? .null
        } else if let location = body["location"] {
            saysCounts = false
            events = (location.array ?? [location]).map { record in
                let id = record["uuid"]?.string ?? ""
                return Event(id: id, name: id)
            }
        } else if request.url.path.hasPrefix("/track/") {
            saysCounts = false
            let name = body["event_type"]?.string ?? "customer"
            events = [Event(id: body["message_id"]?.string ?? "", name: name)]
        } else {
            saysCounts = false
            events = []
        }
        members["customer"] = body["customer_ids"]?["registered"] ?? .null
        members["events"] = .array(events.map { .string($0.name) })
        members["count"] = .integer(Int64(events.count))
        members["to"] = isForTokens ? "tokens" : events.isEmpty ? "query" : "events"
        members["refresh"] = refreshToken.map { .string($0) } ?? .null
        let authorization = request.header("Authorization") ?? ""
        for (scheme, name) in [("Bearer ", "token"), ("Token ", "key")] {
            let isThis = authorization.hasPrefix(scheme)
            members[name] = isThis ? .string(String(authorization.dropFirst(scheme.count))) : .null
        }
        observed = .object(members)
    }

    /// Whether a rule's `when` matches this request. Without `to` it matches requests with events only.
    func matches(_ condition: JSONValue, at elapsed: TimeInterval) -> Bool {
        let members = condition.object ?? [:]
        guard observed["to"] == (members["to"] ?? "events") else { return false }
        return members.allSatisfy { name, value in
            switch name {
            case "events":
                let names = Set(events.map(\.name))
                return value.array?.contains { names.contains($0.string ?? "") } == true
            case "more_than": return Double(events.count) > value.double ?? .infinity
            case "before": return elapsed < value.double ?? 0
            default: return Matching.difference(value, observed[name] ?? .null) == nil
            }
        }
    }
}
