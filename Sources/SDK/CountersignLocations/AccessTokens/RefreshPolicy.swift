internal import Foundation

extension RefreshMachine {
    struct Policy {
        /// A token is refreshed this many seconds before it expires, or `leewayShare` of its lifetime, whichever is
        /// less. Up to half of this leeway is added at random, so that devices do not refresh at the same time. A
        /// leeway below one second counts as 0, because servers count whole seconds.
        var leeway: TimeInterval = 60
        var leewayShare = 0.04
        /// The limit on refreshes within `window` seconds that no expiry explains.
        var windowCount = 5
        var window: TimeInterval = 30
        /// The limit on consecutive fresh tokens that are rejected.
        var maximumRejectedTokens = 2
        /// The limit on unusable responses without a new token in between, over at least `unusableSpan` seconds.
        var maximumUnusableAnswers = 3
        var unusableSpan: TimeInterval = 300
        /// Rejections without a reason that are final if they span `rejectionSpan` seconds or more without a new token.
        var maximumRejections = 3
        var rejectionSpan: TimeInterval = 3_600
        /// Seconds until the next attempt while suspended.
        var suspension: TimeInterval = 3_600
        var retry = RetryPolicy(baseDelay: 2, maximumDelay: 300)
        /// Delays after a lost response. The gateway repeats that response for a minute, in which a request that times
        /// out (`AccessTokens.longestExchange`) and this delay fit.
        var retryWhenLost = RetryPolicy(baseDelay: 2, maximumDelay: 30)
    }
}
