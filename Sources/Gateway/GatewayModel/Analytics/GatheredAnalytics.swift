package import CountersignCore

/// Counts and samples since the last ``AnalyticsSource/take()``.
package struct GatheredAnalytics: Sendable {
    package struct Minute: Hashable {
        package let start: Int64
        package var key: VerdictKey

        package init(start: Int64, key: VerdictKey) {
            self.start = start
            self.key = key
        }
    }

    package struct Hour: Hashable {
        package let appID: String
        package let start: Int64

        package init(appID: String, start: Int64) {
            self.appID = appID
            self.start = start
        }
    }

    package struct FailedUser: Hashable {
        package let hour: Hour
        package let code: AuthErrorCode
        package let appVersion: String
        package let user: UInt64

        package init(hour: Hour, code: AuthErrorCode, appVersion: String, user: UInt64) {
            self.hour = hour
            self.code = code
            self.appVersion = appVersion
            self.user = user
        }
    }

    package var counts: [Minute: Int] = [:]
    package var users: [Hour: DistinctCounter] = [:]
    package var failedUsers: Set<FailedUser> = []
    package var samples: [FailureSample] = []
    /// Requests missing from the counts, because there were too many different counts.
    package var dropped = 0

    /// Maximum number of counts in memory, 300 bytes each.
    package static let mostCounts = 50_000
    /// Maximum number of user counters in memory, 4 KiB each.
    package static let mostHours = 2_000
    package static let mostFailedUsers = 50_000
    /// Maximum number of samples in memory, up to 20 KiB each.
    package static let mostSamples = 500

    package init(
        counts: [Minute: Int] = [:], users: [Hour: DistinctCounter] = [:], failedUsers: Set<FailedUser> = [],
        samples: [FailureSample] = []
    ) {
        self.counts = counts
        self.users = users
        self.failedUsers = failedUsers
        self.samples = samples
    }

    package var isEmpty: Bool { counts.isEmpty }

    package mutating func count(_ minute: Minute, times: Int = 1) {
        if counts.count < Self.mostCounts || counts[minute] != nil {
            counts[minute, default: 0] += times
        } else {
            dropped += times
        }
    }

    /// Adds counts gathered later. Bounds the memory: if there are too many counts, merges the minutes before the
    /// latest hour into hours, then drops the oldest counts. Drops the oldest users and samples above their limits.
    package mutating func add(_ later: GatheredAnalytics) {
        counts.merge(later.counts, uniquingKeysWith: +)
        for (hour, counter) in later.users { users[hour, default: DistinctCounter()].add(counter) }
        failedUsers.formUnion(later.failedUsers)
        samples += later.samples
        dropped += later.dropped
        shrinkCounts()
        if users.count > Self.mostHours {
            let oldest = users.keys.sorted { $0.start < $1.start }.prefix(users.count - Self.mostHours / 2)
            for hour in oldest { users[hour] = nil }
        }
        if failedUsers.count > Self.mostFailedUsers {
            failedUsers = Set(
                failedUsers.sorted { $0.hour.start > $1.hour.start }.prefix(Self.mostFailedUsers / 2))
        }
        if samples.count > Self.mostSamples { samples.removeFirst(samples.count - Self.mostSamples) }
    }

    private mutating func shrinkCounts() {
        guard counts.count > Self.mostCounts, let newest = counts.keys.lazy.map(\.start).max() else { return }
        let hour = newest - newest % 3_600_000
        var kept: [Minute: Int] = [:]
        for (minute, count) in counts {
            let start = minute.start < hour ? minute.start - minute.start % 3_600_000 : minute.start
            kept[Minute(start: start, key: minute.key), default: 0] += count
        }
        // Shrink to half of the limit, so that not every later call has to shrink again.
        let excess = kept.count - Self.mostCounts / 2
        if excess > 0 {
            for minute in kept.keys.sorted(by: { $0.start < $1.start }).prefix(excess) {
                dropped += kept.removeValue(forKey: minute) ?? 0
            }
        }
        counts = kept
    }

    /// The counts summed over endpoints, enforcement, clients and keys.
    package var sums: [Minute: Int] {
        counts.reduce(into: [:]) { sums, entry in
            sums[Minute(start: entry.key.start, key: entry.key.key.sum), default: 0] += entry.value
        }
    }
}

package protocol AnalyticsSource: Sendable {
    /// Returns everything gathered since the last call and removes it from memory.
    func take() -> GatheredAnalytics
}
