import CountersignCore
import CountersignTransport
import Foundation
import SDKTestSupport

/// A gateway as the SDK sees it: stores each message id once. Tests can script other answers.
final class FakeGateway: Sendable {
    struct Message: Decodable, Sendable {
        let type: String
        let messageId: String
        let userId: String?
        let anonymousId: String?
        let timestamp: String
        let event: String?
    }

    struct Received: Sendable {
        let messages: [Message]
        let token: String?
    }

    private struct Body: Decodable { let batch: [Message] }

    private struct State {
        var stored: [String: Message] = [:]
        var order: [String] = []
        var batches: [Received] = []
        var duplicates = 0
        /// Returns nil to store the batch.
        var respond: @Sendable (Received) -> TransportResponse? = { _ in nil }
    }

    private let state = Lock(State())

    var stored: [Message] { state.withLock { state in state.order.compactMap { state.stored[$0] } } }
    var events: [String] { stored.compactMap(\.event) }
    var batches: [Received] { state.withLock { $0.batches } }
    var duplicates: Int { state.withLock { $0.duplicates } }

    /// Calls `body` before storing each batch. A result other than nil is the answer, and nothing is stored.
    func respond(_ body: @escaping @Sendable (Received) -> TransportResponse?) {
        state.withLock { $0.respond = body }
    }

    func answer(_ request: TransportRequest) throws -> TransportResponse {
        guard let body = try? JSONDecoder().decode(Body.self, from: Data(request.body)) else {
            return .json(400, #"{"success":false,"code":"invalid_json","reason":"scripted"}"#)
        }
        let token = request.header("Authorization").map { String($0.dropFirst("Bearer ".count)) }
        let received = Received(messages: body.batch, token: token)
        let respond = state.withLock { state in
            state.batches.append(received)
            return state.respond
        }
        if let answer = respond(received) { return answer }
        return store(received)
    }

    func store(_ received: Received) -> TransportResponse {
        state.withLock { state in
            var accepted = 0
            for message in received.messages {
                if state.stored.updateValue(message, forKey: message.messageId) == nil {
                    accepted += 1
                    state.order.append(message.messageId)
                }
            }
            let duplicates = received.messages.count - accepted
            state.duplicates += duplicates
            return .json(
                200, #"{"success":true,"accepted":\#(accepted),"duplicates":\#(duplicates),"rejected":[]}"#)
        }
    }
}
