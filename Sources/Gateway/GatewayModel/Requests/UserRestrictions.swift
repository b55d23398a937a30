internal import CountersignCore

/// The restrictions of users and devices of one app. An app without restrictions has no such object, so its
/// requests take no extra time.
package final class UserRestrictions: Sendable {
    package enum Rejection: Sendable, Equatable {
        case blocked(UserRestriction.Subject, retryAfterSeconds: Int64)
        case limited(UserRestriction.Subject, retryAfterSeconds: Int)
    }

    private struct Measures {
        /// In milliseconds since 1970.
        var blockedUntil: Int64?
        var limit: (perMinute: Int, until: Int64)?
        var revoked: (before: Int64, until: Int64)?
    }

    /// The maximum length in bytes of an id that is looked up. Restrictions are for shorter ids only.
    private static let longestID = 1_024
    /// The maximum of `Retry-After` for a blocked user, in seconds.
    private static let longestWait: Int64 = 3_600

    package let all: [UserRestriction]
    private let users: BytewiseDictionary<Measures>
    private let devices: BytewiseDictionary<Measures>
    /// The time at which the bucket of each limited user or device will be full, in milliseconds since 1970.
    private let buckets: Lock<[BytewiseText: Int64]>
    private let sharers: @Sendable () -> Int

    /// `before` is the app's previous object. The new object shares its buckets, so that a change does not refill
    /// the buckets. `sharers` is the number of gateways that share a limit.
    package init(
        _ all: [UserRestriction], before: UserRestrictions? = nil,
        sharers: @escaping @Sendable () -> Int = { 1 }
    ) {
        self.all = all
        self.sharers = sharers
        buckets = before?.buckets ?? Lock([:])
        users = Self.measures(all, of: .user)
        devices = Self.measures(all, of: .device)
    }

    private static func measures(
        _ all: [UserRestriction], of subject: UserRestriction.Subject
    ) -> BytewiseDictionary<Measures> {
        var found: BytewiseDictionary<Measures> = [:]
        for one in all where one.subject == subject {
            let until = one.untilMilliseconds ?? .max
            switch one.action {
            case .block: found[one.id, default: Measures()].blockedUntil = until
            case .limit:
                found[one.id, default: Measures()].limit = (max(1, one.requestsPerMinute ?? 1), until)
            case .revoke: found[one.id, default: Measures()].revoked = (one.sinceMilliseconds, until)
            }
        }
        return found
    }

    /// Whether a revocation makes a user's token invalid. A token without `iat` counts as older than the revocation.
    package func revokes(_ user: String, issuedAt: Double?, at instant: Double) -> Bool {
        guard user.utf8.count <= Self.longestID, let revoked = users[user]?.revoked,
            Milliseconds(seconds: instant).count < revoked.until
        else { return false }
        return issuedAt.map { $0 < Milliseconds(revoked.before).seconds } ?? true
    }

    /// The rejection of a request of these users; nil if it is allowed. Counts the request.
    package func rejection(ofUsers ids: [String], at milliseconds: Int64) -> Rejection? {
        rejection(ids, users, .user, milliseconds)
    }

    package func rejection(ofDevices ids: [String], at milliseconds: Int64) -> Rejection? {
        devices.isEmpty ? nil : rejection(ids, devices, .device, milliseconds)
    }

    private func rejection(
        _ ids: [String], _ measures: BytewiseDictionary<Measures>, _ subject: UserRestriction.Subject,
        _ now: Int64
    ) -> Rejection? {
        let found = ids.compactMap { id in
            id.utf8.count <= Self.longestID ? measures[id].map { (id, $0) } : nil
        }
        if let end = found.compactMap({ $0.1.blockedUntil }).max(), now < end {
            return .blocked(subject, retryAfterSeconds: min(Self.longestWait, (end - now + 999) / 1_000))
        }
        var wait = 0
        for (id, measures) in found {
            guard let limit = measures.limit, now < limit.until else { continue }
            wait = max(wait, take("\(subject.rawValue) \(id)", limit.perMinute, now))
        }
        return wait > 0 ? .limited(subject, retryAfterSeconds: wait) : nil
    }

    /// Counts a request against the limit per minute. Returns the seconds to wait; 0 if the request is allowed.
    private func take(_ name: String, _ perMinute: Int, _ now: Int64) -> Int {
        let cost = 60_000 * Int64(max(1, sharers())) / Int64(perMinute)
        let key = BytewiseText(name)
        return buckets.withLock { buckets in
            // Limits the time, because a bucket would stay empty for long after the clock was set back.
            let depth = max(60_000, cost)
            let fullAt = min(buckets[key] ?? now, now + depth)
            let full = max(fullAt, now) + cost
            if full - now > depth { return max(1, Int((full - now - depth + 999) / 1_000)) }
            if buckets.count > 2 * all.count { buckets = buckets.filter { $0.value > now } }
            buckets[key] = full
            return 0
        }
    }
}
