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
        /// Wait until this instant, or if nil, for an event.
        case wait(until: TimeInterval?)
        /// Read events. Then report `claimed`, `claimFailed` or `leased`.
        case claim(ClaimRequest)
        /// Find a token for this user, with another generation than the rejected one. Then report
        /// `authorized`, `authorizationPending`, `authorizationFailed` or `authorizationDeferred`.
        case authorize(UserKey, rejectedGeneration: Int?)
        /// Send the events. Then report `answered` or `failed`.
        case send([QueuedEvent], attempt: Int)
        /// Write this to the queue. Then report `applied` or `applyFailed`.
        case apply(DeliveryOutcome)
        /// A round has ended. Resume waiting flushes. Needs no report.
        case finish(FlushResult.Ending)
    }

    /// Further results of a server's response.
    struct Consequence: Equatable {
        var batch: FlushResult.Batch
        /// A rejected token, or a warning about the token of an accepted request.
        var failure: ServerAnswer.TokenVerdict?
        var isOptional = false
    }
}
