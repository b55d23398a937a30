import CountersignCore
import Foundation
import GatewayHTTP
import GatewayModel
import GatewayStorage

/// A request to a webhook in memory.
struct WebhookRequest: Sendable, Equatable {
    let endpoint: String
    let messageID: String
    /// The sequence numbers of the request's events.
    let events: [Int64]
    let isReplay: Bool
    let isTest: Bool
    let isAfterGap: Bool
    let body: String

    init(_ body: [UInt8], _ messageID: String, to endpoint: WebhookEndpoint) {
        let json = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
        self.endpoint = endpoint.id
        self.messageID = messageID
        events = (json?["events"] as? [[String: Any]] ?? []).compactMap {
            ($0["message_id"] as? String).flatMap { Int64($0) }
        }
        isReplay = json?["replay"] as? Bool == true
        isTest = json?["type"] as? String == "test"
        isAfterGap = json?["events_missed"] as? Bool == true
        self.body = String(decoding: body, as: UTF8.self)
    }
}

/// Webhooks with other settings and receivers than those of the conformance suite.
extension DeliveryBench {
    /// The requests since the last ``clearRequests()``.
    var requests: [WebhookRequest] { receiver.requests.withLock { $0 } }

    func clearRequests() { receiver.requests.withLock { $0 = [] } }

    /// Makes an endpoint that begins with the first event.
    func endpoint(_ members: JSONObject = [:]) throws -> WebhookEndpoint {
        try directory.webhooks.create(
            of: "shop", members.merging(["url": "https://shop.example/in"]) { one, _ in one }, secret: nil,
            after: 0, at: now.withLock { $0 }
        ).endpoint
    }

    /// Answers all requests that wait.
    func release() {
        let waiting = receiver.held.withLock { held in
            defer { held = [] }
            return held
        }
        for request in waiting { request.done(WebhookAttempt(status: 200)) }
        advance()
    }

    func progress(_ endpoint: WebhookEndpoint) throws -> DeliveryProgress? {
        try consumers.progress(.webhook)[endpoint.consumer]
    }

    func deliveries(of endpoint: WebhookEndpoint) throws -> [DeliveryRecord] {
        try storage.deliveries.deliveries(of: endpoint.id, before: nil, limit: 500)
    }

    /// Answers requests with a status; nil leaves them open until ``release()``.
    func answer(_ status: @escaping @Sendable (WebhookRequest) -> Int?) {
        receiver.answer.withLock { $0.make = { status($0).map { WebhookAttempt(status: $0) } } }
    }
}
