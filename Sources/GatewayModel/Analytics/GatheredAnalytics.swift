package import CountersignCore

/// What was counted and sampled since the last look.
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

    /// The counts of all endpoints, modes, versions and keys together.
    package var sums: [Minute: Int] {
        counts.reduce(into: [:]) { sums, entry in
            sums[Minute(start: entry.key.start, key: entry.key.key.sum), default: 0] += entry.value
        }
    }
}

/// Gathers analytics in memory, for whoever keeps them.
package protocol AnalyticsSource: Sendable {
    /// Takes out what was gathered.
    func take() -> GatheredAnalytics

    /// Puts back what could not be kept.
    func giveBack(_ gathered: GatheredAnalytics)
}
