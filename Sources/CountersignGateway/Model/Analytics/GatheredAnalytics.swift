internal import CountersignCore

/// What was counted and sampled since the last look.
struct GatheredAnalytics: Sendable {
    struct Minute: Hashable {
        let start: Int64
        let key: VerdictKey
    }

    struct Hour: Hashable {
        let appID: String
        let start: Int64
    }

    struct FailedUser: Hashable {
        let hour: Hour
        let code: AuthErrorCode
        let appVersion: String
        let user: UInt64
    }

    var counts: [Minute: Int] = [:]
    var users: [Hour: DistinctCounter] = [:]
    var failedUsers: Set<FailedUser> = []
    var samples: [FailureSample] = []

    var isEmpty: Bool { counts.isEmpty }

    /// The counts of all endpoints, modes, versions and keys together.
    var sums: [Minute: Int] {
        counts.reduce(into: [:]) { sums, entry in
            sums[Minute(start: entry.key.start, key: entry.key.key.sum), default: 0] += entry.value
        }
    }
}

/// Gathers analytics in memory, for whoever keeps them.
protocol AnalyticsSource: Sendable {
    /// Takes out what was gathered.
    func take() -> GatheredAnalytics

    /// Puts back what could not be kept.
    func giveBack(_ gathered: GatheredAnalytics)
}
