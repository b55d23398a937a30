internal import Foundation

extension Sender {
    struct Settings {
        var flushPolicy = FlushPolicy.automatic
        var networkRetry = RetryPolicy.network
        var authenticationRetry = RetryPolicy.authentication
        var configurationRetry = RetryPolicy.configuration
        var batchEvents = 100
        var batchBytes = 400_000
        var hasTokenProvider = false
        var newestFirst = false
    }

    enum Action: Equatable {
        /// Wait until this uptime or until the next event or command; nil for no time limit.
        case wait(until: TimeInterval?)
        /// Then report `claimed`, `claimFailed` or `leased`.
        case claim(ClaimRequest)
        /// Find a token with another generation than the rejected one. Then report `authorized`,
        /// `authorizationPending`, `authorizationFailed` or `authorizationDeferred`.
        case authorize(UserKey, rejectedGeneration: Int?)
        /// Then report `answered` or `failed`.
        case send([QueuedEvent], attempt: Int)
        /// Then report `applied` or `applyFailed`.
        case apply(DeliveryOutcome)
        /// Resume waiting flushes. Needs no report.
        case finish(FlushResult.Ending)
    }

    struct Consequence: Equatable {
        var batch: FlushResult.Batch
        /// A rejected token, or a warning about the token of an accepted request.
        var failure: ServerAnswer.TokenVerdict?
        var isOptional = false
    }
}
