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
        /// Nothing to do before this instant; nil: before something happens.
        case wait(until: TimeInterval?)
        /// Read events; then `claimed`, `claimFailed` or `leased`.
        case claim(ClaimRequest)
        /// Find a token for this user, another one than the rejected generation if there is one; then `authorized`,
        /// `authorizationPending`, `authorizationFailed` or `authorizationDeferred`.
        case authorize(UserKey, rejectedGeneration: Int?)
        /// Send; then `answered` or `failed`.
        case send([QueuedEvent], attempt: Int)
        /// Make this durable; then `settled` or `settleFailed`.
        case settle(Settlement)
        /// A round is over; whoever waits for a flush is told. No report needed.
        case finish(FlushResult.Ending)
    }

    /// What an answer leads to beside the next action.
    struct Consequence: Equatable {
        var batch: FlushResult.Batch
        /// A refused or, in a request that was accepted, criticized token.
        var failure: ServerAnswer.TokenVerdict?
        var isOptional = false
    }
}
