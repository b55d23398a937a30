internal import CountersignCore
internal import Foundation

/// Token buckets, one a key, kept as the moment at which each would be full (the generic cell rate algorithm of
/// ITU-T I.371): one number a key, and nothing to refill.
package final class RateLimiter<Key: Hashable & Sendable>: Sendable {
    /// What becomes of a request.
    package enum Decision: Equatable {
        case allowed
        /// The bucket is empty; in this many seconds there is room again, at least 1.
        case limited(retryAfterSeconds: Int)
    }

    /// Requests a second.
    let rate: Int
    /// Requests at once.
    package var burst: Int { rate * 5 }

    private let capacity: Int
    private let sharers: @Sendable () -> Int
    private let now: @Sendable () -> UInt64
    private let fullAt = Lock<[Key: UInt64]>([:])

    /// The rate is shared with as many gateways as `sharers` says, this one included: each takes its part.
    package init(
        rate: Int, capacity: Int = 65_536, sharers: @escaping @Sendable () -> Int = { 1 },
        now: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
    ) {
        self.rate = rate
        self.capacity = capacity
        self.sharers = sharers
        self.now = now
    }

    /// Takes a token out of the key's bucket.
    package func take(_ key: Key) -> Decision {
        guard rate > 0 else { return .allowed }
        let now = now()
        let whole = 1_000_000_000 / UInt64(rate)
        let cost = whole * UInt64(max(1, sharers()))
        // At least one at once, however many share.
        let depth = max(cost, whole * UInt64(burst))
        return fullAt.withLock { fullAt in
            if fullAt.count >= capacity, fullAt[key] == nil { forget(&fullAt, now) }
            let full = max(fullAt[key] ?? now, now) + cost
            guard full - now <= depth else {
                let wait = full - now - depth
                return .limited(retryAfterSeconds: max(1, Int((wait + 999_999_999) / 1_000_000_000)))
            }
            fullAt[key] = full
            return .allowed
        }
    }

    /// Full buckets need not be remembered. When all are in use, memory is worth more than memory of them.
    private func forget(_ fullAt: inout [Key: UInt64], _ now: UInt64) {
        fullAt = fullAt.filter { $0.value > now }
        if fullAt.count > capacity / 2 { fullAt.removeAll(keepingCapacity: true) }
    }
}

extension RateLimiter.Decision {
    /// The refusal of a request that came too soon, or nil. Returns 429 with when to come again, or nil.
    package func refusal(_ request: HTTPRequest, policy: String, burst: Int) -> HTTPResponse? {
        guard case .limited(let seconds) = self else { return nil }
        // draft-ietf-httpapi-ratelimit-headers-10.
        return HTTPResponse.failure(
            429, code: "rate_limited",
            reason:
                "too many requests for this \(policy); nothing was stored, send it again after Retry-After",
            requestID: request.id
        )
        .with("Retry-After", String(seconds))
        .with("RateLimit-Policy", #""\#(policy)";q=\#(burst);w=5"#)
        .with("RateLimit", #""\#(policy)";r=0;t=\#(seconds)"#)
    }
}
