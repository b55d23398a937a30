package import CountersignCore

/// The dimensions that requests are counted by.
package struct VerdictKey: Hashable, Sendable {
    package var appID: String
    /// The path of the endpoint, as in the routing table.
    package var endpoint: String
    package var verdict: VerdictKind
    /// The reason why verification of the token failed; nil when it succeeded or was not attempted.
    package var code: AuthErrorCode?
    package var enforcement: Enforcement?
    package var client: ClientInfo
    /// The key that verified the token; nil when no key did.
    package var keyID: String?

    package init(
        appID: String, endpoint: String, verdict: VerdictKind, code: AuthErrorCode? = nil,
        enforcement: Enforcement? = nil, client: ClientInfo, keyID: String? = nil
    ) {
        self.appID = appID
        self.endpoint = endpoint
        self.verdict = verdict
        self.code = code
        self.enforcement = enforcement
        self.client = client
        self.keyID = keyID
    }

    /// The key without endpoint, enforcement, client and key id.
    var sum: VerdictKey {
        VerdictKey(
            appID: appID, endpoint: "", verdict: verdict, code: code, enforcement: nil, client: ClientInfo(),
            keyID: nil)
    }
}

package struct VerdictBucket: Sendable, Equatable {
    package var startMilliseconds: Int64
    package var accepted = 0
    package var anonymous = 0
    package var notJudged = 0
    package var warned = 0
    package var rejected = 0
    package var codes: [AuthErrorCode: Failures] = [:]

    package struct Failures: Sendable, Equatable {
        package var warned = 0
        package var rejected = 0
    }

    package init(startMilliseconds: Int64) {
        self.startMilliseconds = startMilliseconds
    }

    package var failures: Int { warned + rejected }

    package mutating func add(_ verdict: VerdictKind, _ code: AuthErrorCode?, _ count: Int) {
        switch verdict {
        case .accepted: accepted += count
        case .anonymous: anonymous += count
        case .notJudged: notJudged += count
        case .acceptedWithWarning:
            warned += count
            if let code { codes[code, default: Failures()].warned += count }
        case .rejected:
            rejected += count
            if let code { codes[code, default: Failures()].rejected += count }
        }
    }

    mutating func add(_ other: VerdictBucket) {
        accepted += other.accepted
        anonymous += other.anonymous
        notJudged += other.notJudged
        warned += other.warned
        rejected += other.rejected
        for (code, failures) in other.codes {
            codes[code, default: Failures()].warned += failures.warned
            codes[code, default: Failures()].rejected += failures.rejected
        }
    }
}

package enum BucketLength: String, Sendable, TextEnum {
    case minute, hour, day

    package var milliseconds: Int64 {
        switch self {
        case .minute: 60_000
        case .hour: 3_600_000
        case .day: 86_400_000
        }
    }

    package var retentionMilliseconds: Int64 {
        switch self {
        case .minute: 48 * 3_600_000
        case .hour: 90 * 86_400_000
        case .day: 730 * 86_400_000
        }
    }

    /// The length of a chart's buckets: minutes for a range of up to 3 hours, hours for up to 8 days, otherwise days.
    package static func suited(to milliseconds: Int64) -> BucketLength {
        if milliseconds <= 3 * 3_600_000 { return .minute }
        return milliseconds <= 8 * 86_400_000 ? .hour : .day
    }
}
