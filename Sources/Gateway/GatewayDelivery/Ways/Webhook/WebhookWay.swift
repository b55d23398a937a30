internal import CountersignCore
internal import Foundation
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// Sends batches to one webhook, and records each attempt.
final class WebhookWay: Way {
    private struct State {
        var endpoint: WebhookEndpoint
        var isClosed = false
    }

    /// 413 Content Too Large (RFC 9110, section 15.5.14).
    private static let tooLarge = 413
    /// 410 Gone (RFC 9110, section 15.5.11).
    private static let gone = 410

    private let output: WebhookOutput
    private let state: Lock<State>

    init(_ endpoint: WebhookEndpoint, _ output: WebhookOutput) {
        self.output = output
        state = Lock(State(endpoint: endpoint))
    }

    func change(_ endpoint: WebhookEndpoint) { state.withLock { $0.endpoint = endpoint } }

    func close() { state.withLock { $0.isClosed = true } }

    func accept(_ batch: DeliveryBatch, _ done: @escaping @Sendable (DeliveryAnswer) -> Void) {
        let endpoint = state.withLock { $0.endpoint }
        let content = WebhookBatch(batch)
        let id: String
        do {
            id = try batch.identify(WebhookBatch.digest(of: content.body), content.reached)
        } catch {
            return done(.notTried)
        }
        let began = Milliseconds(output.now()).count
        output.send(content.body, id, endpoint, { [state] in state.withLock { $0.isClosed } }) {
            [output] attempt in
            guard attempt.error != OutboundRequest.Failure.Code.cancelled.rawValue else {
                return done(.notTried)
            }
            output.counts.add(endpoint.appID, isDelivered: attempt.error == nil)
            do {
                try output.attempts.add(
                    DeliveryRecord(attempt, of: endpoint.id, id, batch, content, at: began))
            } catch {
                // The list of attempts is for operators only, so the delivery counts without its entry.
                output.report(endpoint, error)
            }
            done(Self.answer(to: attempt, content))
        }
    }

    private static func answer(to attempt: WebhookAttempt, _ content: WebhookBatch) -> DeliveryAnswer {
        guard let error = attempt.error else { return .delivered(through: content.reached) }
        if attempt.status == tooLarge, content.events > 1 {
            return .split(afterSeconds: attempt.retryAfterSeconds)
        }
        let failure = DeliveryFailure(error, attempt.reason, status: attempt.status)
        return attempt.status == gone
            ? .pause(.gone, failure) : .retry(failure, afterSeconds: attempt.retryAfterSeconds)
    }
}

extension DeliveryRecord {
    fileprivate init(
        _ attempt: WebhookAttempt, of endpointID: String, _ messageID: String, _ batch: DeliveryBatch,
        _ content: WebhookBatch, at milliseconds: Int64
    ) {
        let kind: Kind =
            switch batch.kind {
            case .events, .probe: .events
            case .replay: .replay
            case .test: .test
            }
        self.init(
            attempt, of: endpointID, messageID, kind, content, batch.attempt, at: milliseconds)
    }
}
