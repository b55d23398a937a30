internal import CountersignCore
internal import GatewayModel

/// Token buckets in bounded memory. A bucket is stored as the time at which it will be full (the generic cell
/// rate algorithm of ITU-T I.371).
///
/// The table is set-associative: a keyed hash of the key selects a set of ``ways`` buckets. A new key may
/// replace only a full bucket. If no bucket in the set is full, new keys share the set's overflow bucket. So
/// a key never gets tokens earlier than its own bucket would give them.
package final class RateLimiter<Key: Hashable & Sendable>: Sendable {
    package enum Decision: Equatable {
        case allowed
        /// The bucket is empty. It has a token again in this many seconds, at least 1.
        case limited(retryAfterSeconds: Int)
    }

    let rate: Int
    package var burst: Int { rate * 5 }

    private struct Bucket {
        var key = 0
        var fullAt: UInt64 = 0
    }

    private struct Table {
        /// ``ways`` buckets per set; empty before the first request.
        var buckets: [Bucket] = []
        /// The time at which the overflow bucket of each set will be full.
        var overflow: [UInt64] = []
    }

    private static var ways: Int { 8 }

    private let sets: Int
    private let sharers: @Sendable () -> Int
    private let now: @Sendable () -> UInt64
    /// Prevents clients from choosing keys that share a set.
    private let secret = UInt64.random(in: .min ... .max)
    private let table = Lock(Table())

    /// `sharers` is the number of gateways that share the rate, including this one; each uses an equal part.
    /// `capacity` is the number of buckets, 16 bytes each.
    package init(
        rate: Int, capacity: Int = 65_536, sharers: @escaping @Sendable () -> Int = { 1 },
        now: @escaping @Sendable () -> UInt64 = { MonotonicClock.now }
    ) {
        self.rate = rate
        sets = max(1, capacity / Self.ways)
        self.sharers = sharers
        self.now = now
    }

    package func take(_ key: Key) -> Decision {
        guard rate > 0 else { return .allowed }
        let now = now()
        let whole = 1_000_000_000 / UInt64(rate)
        let cost = whole * UInt64(max(1, sharers()))
        // Allows a burst of at least one request, however many gateways share the rate.
        let depth = max(cost, whole * UInt64(burst))
        let hash = hash(key)
        let set = Int(UInt(bitPattern: hash) % UInt(sets))
        return table.withLock { table in
            if table.buckets.isEmpty {
                table.buckets = Array(repeating: Bucket(), count: sets * Self.ways)
                table.overflow = Array(repeating: 0, count: sets)
            }
            var found: Int?
            var free: Int?
            for index in set * Self.ways..<(set + 1) * Self.ways {
                if table.buckets[index].fullAt <= now {
                    free = index
                } else if table.buckets[index].key == hash {
                    found = index
                    break
                }
            }
            // A key without a bucket starts with the level of the overflow bucket, so that replacing a bucket gives no
            // extra tokens.
            let fullAt = found.map { table.buckets[$0].fullAt } ?? table.overflow[set]
            let full = max(fullAt, now) + cost
            guard full - now <= depth else {
                let wait = full - now - depth
                return .limited(retryAfterSeconds: max(1, Int((wait + 999_999_999) / 1_000_000_000)))
            }
            if let index = found ?? free {
                table.buckets[index] = Bucket(key: hash, fullAt: full)
            } else {
                table.overflow[set] = full
            }
            return .allowed
        }
    }

    private func hash(_ key: Key) -> Int {
        var hasher = Hasher()
        hasher.combine(secret)
        hasher.combine(key)
        return hasher.finalize()
    }
}

extension RateLimiter.Decision {
    package func rejection(_ request: HTTPRequest, policy: String, burst: Int) -> HTTPResponse? {
        guard case .limited(let seconds) = self else { return nil }
        // draft-ietf-httpapi-ratelimit-headers-10.
        return request.failure(
            429, "rate_limited",
            "too many requests for this \(policy); nothing was stored, send it again after Retry-After"
        )
        .with("Retry-After", String(seconds))
        .with("RateLimit-Policy", #""\#(policy)";q=\#(burst);w=5"#)
        .with("RateLimit", #""\#(policy)";r=0;t=\#(seconds)"#)
    }
}
