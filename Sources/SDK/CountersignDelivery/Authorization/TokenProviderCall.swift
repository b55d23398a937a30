internal import CountersignCore
package import CountersignTransport
package import Foundation

/// Thrown by a provider that applies its own time limit. Counts as a time-out and not as a failure.
package struct TokenProviderTimeout: Error {
    package init() {}
}

/// One call of the app's token provider, with a time limit. A provider cannot be stopped: `late` receives a token that
/// arrives after the time limit.
package final class TokenProviderCall: Sendable {
    package enum Outcome: Sendable {
        case token(String)
        /// The provider returned nil.
        case none
        case failed
        case timedOut
    }

    /// True in tasks of the provider, which must not wait for sending, because sending waits for the provider.
    @TaskLocal package static var isInside = false

    private struct State {
        var waiter: CheckedContinuation<Outcome, Never>?
        var outcome: Outcome?
        var isFinished = false
    }

    private let state = Lock(State())

    /// True until the provider returns, also after the time limit.
    package var isRunning: Bool { state.withLock { !$0.isFinished } }

    package init(
        provider: @escaping @Sendable () async throws -> String?, late: @escaping @Sendable (String) -> Void
    ) {
        ProviderThread.run {
            let outcome: Outcome
            do {
                let token = try await Self.$isInside.withValue(true) { try await provider() }
                outcome = token.map { .token($0) } ?? .none
            } catch {
                outcome = error is TokenProviderTimeout ? .timedOut : .failed
            }
            if !self.complete(outcome, isFinished: true), case .token(let token) = outcome { late(token) }
        }
    }

    /// Returns `timedOut` also when the task is cancelled. Call it once.
    package func outcome(within seconds: TimeInterval, on clock: any ClientClock) async -> Outcome {
        let timer = Task {
            do {
                try await clock.sleep(until: clock.uptime + seconds)
                self.complete(.timedOut)
            } catch {
                // The wait ended before the time limit.
            }
        }
        defer { timer.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let outcome = state.withLock { state -> Outcome? in
                    if state.outcome == nil { state.waiter = continuation }
                    return state.outcome
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            complete(.timedOut)
        }
    }

    /// Returns false if there was an outcome already.
    @discardableResult
    private func complete(_ outcome: Outcome, isFinished: Bool = false) -> Bool {
        let (isFirst, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Outcome, Never>?) in
            if isFinished { state.isFinished = true }
            guard state.outcome == nil else { return (false, nil) }
            state.outcome = outcome
            defer { state.waiter = nil }
            return (true, state.waiter)
        }
        waiter?.resume(returning: outcome)
        return isFirst
    }
}
