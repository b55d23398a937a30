internal import CountersignCore
internal import Foundation

/// A request to the gateway, with its path below the app's path.
struct GatewayRequest: Sendable {
    /// Seconds that the gateway waits for events before it returns an empty page.
    static let wait = 30
    /// Seconds for the network, in addition to `wait` in requests that wait.
    private static let slack: TimeInterval = 15

    let method: String
    let path: String
    var query: [(name: String, value: String)] = []
    var body: JSONObject = [:]
    var timeout = slack

    static func events(after position: String?, _ filter: EventFilter, limit: Int) -> GatewayRequest {
        let query: [(String, String?)] = [
            ("after", position), ("limit", String(limit)), ("wait", String(wait)),
            ("verdict", filter.verdict?.rawValue), ("type", filter.type), ("name", filter.name),
            ("user", filter.userID), ("claim", filter.claim),
        ]
        return GatewayRequest(
            method: "GET", path: "events",
            query: query.compactMap { name, value in value.map { (name, $0) } },
            timeout: TimeInterval(wait) + slack)
    }

    static func poll(_ consumer: String, limit: Int, leaseSeconds: Int) -> GatewayRequest {
        GatewayRequest(
            method: "POST", path: "consumers/\(consumer)/poll",
            body: [
                "limit": .integer(Int64(limit)), "wait": .integer(Int64(wait)),
                "lease_seconds": .integer(Int64(leaseSeconds)),
            ], timeout: TimeInterval(wait) + slack)
    }

    static func acknowledge(_ consumer: String, lease: String, through position: String?) -> GatewayRequest {
        var body: JSONObject = ["lease": .string(lease)]
        body["position"] = position.map { .string($0) }
        return GatewayRequest(method: "POST", path: "consumers/\(consumer)/ack", body: body)
    }

    static func release(_ consumer: String, lease: String) -> GatewayRequest {
        GatewayRequest(
            method: "POST", path: "consumers/\(consumer)/release", body: ["lease": .string(lease)])
    }
}
