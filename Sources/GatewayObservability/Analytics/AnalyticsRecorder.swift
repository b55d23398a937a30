internal import CountersignCore
package import GatewayModel

/// Counts verdicts as requests end, and gathers samples of those that failed. Handed to ``AnalyticsStore`` once a second;
/// the last hour is kept here, second by second.
package final class AnalyticsRecorder: GatewayObserver, AnalyticsSource {
    private struct State {
        var gathered = GatheredAnalytics()
        /// By app.
        var recent: [String: RecentVerdicts] = [:]
        /// By app, of those whose enforcement may return automatically.
        var knownTokens: [String: KnownTokens] = [:]
        /// By app; all other clients are counted together.
        var clients: [String: FrequentClients] = [:]
        var sampledMinute: Int64 = 0
        var sampled: [SampleKey: Int] = [:]
        /// Tokens of the latest samples, in memory only: to be judged again.
        var tokens: [String: FailedToken] = [:]
        var tokenOrder: [String] = []
    }

    private struct SampleKey: Hashable {
        let appID: String
        let code: AuthErrorCode
    }

    private static let samplesPerMinute = 5
    private static let longestTokens = 2_000
    private static let longestFailedUsers = 50_000

    package let live: LiveFeed
    private let state = Lock(State())

    package init(live: LiveFeed = LiveFeed()) {
        self.live = live
    }

    package func commitEnded(_ record: CommitRecord) {}

    package func requestEnded(_ record: RequestRecord) {
        let context = record.context
        guard let verdict = context.verdict, let appID = context.appID else { return }
        let minute = record.receivedMilliseconds - record.receivedMilliseconds % 60_000
        var key = VerdictKey(
            appID: appID, endpoint: context.route ?? "", verdict: verdict, code: context.authCode,
            enforcement: context.enforcement, client: context.client, keyID: context.keyID)
        let sample = state.withLock { state -> FailureSample? in
            if !state.clients[appID, default: FrequentClients()].note(key.client, minute: minute) {
                key.client = ClientInfo(sdk: "(other)", appVersion: "(other)")
            }
            state.gathered.counts[GatheredAnalytics.Minute(start: minute, key: key), default: 0] += 1
            state.recent[appID, default: RecentVerdicts()].note(
                verdict, context.enforcement, events: context.accepted,
                atMilliseconds: record.receivedMilliseconds)
            Self.noteUser(key, context.userID, record.receivedMilliseconds, &state)
            if let token = context.tokenHash, let userID = context.userID {
                state.knownTokens[appID, default: KnownTokens()].note(
                    token, of: userID, verdict, context.authCode, atMilliseconds: record.receivedMilliseconds)
            }
            guard let failure = context.failure else { return nil }
            return Self.sample(record, key, failure, minute, &state)
        }
        live.publish { id in
            LiveFeed.Entry(
                id: id, atMilliseconds: record.receivedMilliseconds, key: key, userID: context.userID,
                network: FailureSample.network(of: record.clientAddress), requestID: record.id,
                sampleID: sample?.id)
        }
    }

    /// What was judged since a time, to the second. Returns the sum, of an hour at most.
    package func recent(of appID: String? = nil, since milliseconds: Int64) -> RecentVerdicts.Sum {
        state.withLock { state in
            var sum = RecentVerdicts.Sum()
            for recent in appID.map({ [state.recent[$0] ?? RecentVerdicts()] }) ?? Array(state.recent.values)
            {
                recent.add(to: &sum, since: milliseconds)
            }
            return sum
        }
    }

    /// What was judged in the minute before a time, in milliseconds since 1970.
    package func traffic(until milliseconds: Int64) -> GatewayTraffic {
        let sum = recent(since: milliseconds - 60_000)
        return GatewayTraffic(accepted: sum.accepted, rejected: sum.rejected, events: sum.events)
    }

    /// The users of an app whose tokens were good, and those who have lost theirs since a time.
    package func knownTokens(of appID: String, since milliseconds: Int64) -> KnownTokens.Sum {
        state.withLock { $0.knownTokens[appID]?.sum(since: milliseconds) ?? KnownTokens.Sum() }
    }

    package func take() -> GatheredAnalytics {
        state.withLock { state in
            let gathered = state.gathered
            state.gathered = GatheredAnalytics()
            return gathered
        }
    }

    package func giveBack(_ gathered: GatheredAnalytics) {
        state.withLock { state in
            state.gathered.counts.merge(gathered.counts, uniquingKeysWith: +)
            for (hour, counter) in gathered.users {
                state.gathered.users[hour, default: DistinctCounter()].add(counter)
            }
            state.gathered.failedUsers.formUnion(gathered.failedUsers)
            state.gathered.samples = gathered.samples + state.gathered.samples
        }
    }

    /// The token of a sample, while it is in memory.
    package func failedToken(of sampleID: String) -> FailedToken? { state.withLock { $0.tokens[sampleID] } }

    private static func noteUser(_ key: VerdictKey, _ userID: String?, _ at: Int64, _ state: inout State) {
        guard let userID, key.verdict != .anonymous else { return }
        let hash = DistinctCounter.hash(userID)
        let hour = GatheredAnalytics.Hour(appID: key.appID, start: at - at % 3_600_000)
        state.gathered.users[hour, default: DistinctCounter()].add(hash)
        guard let code = key.code, state.gathered.failedUsers.count < longestFailedUsers else { return }
        state.gathered.failedUsers.insert(
            GatheredAnalytics.FailedUser(
                hour: hour, code: code, appVersion: key.client.appVersion ?? "", user: hash))
    }

    /// At most five of a code a minute: a flood of bad tokens costs counting only.
    private static func sample(
        _ record: RequestRecord, _ key: VerdictKey, _ failure: FailedToken, _ minute: Int64,
        _ state: inout State
    ) -> FailureSample? {
        guard let code = key.code else { return nil }
        if state.sampledMinute != minute {
            state.sampledMinute = minute
            state.sampled = [:]
        }
        let place = SampleKey(appID: key.appID, code: code)
        guard state.sampled[place, default: 0] < samplesPerMinute else { return nil }
        state.sampled[place, default: 0] += 1
        let parts = (failure.token ?? "").split(separator: ".", omittingEmptySubsequences: false)
        let isToken = parts.count == 3
        let sample = FailureSample(
            id: UUIDv7.make(), appID: key.appID, atMilliseconds: record.receivedMilliseconds, code: code,
            verdict: key.verdict, endpoint: key.endpoint, userID: record.context.userID, client: key.client,
            network: FailureSample.network(of: record.clientAddress),
            enforcement: key.enforcement ?? .required, requestID: record.id,
            checks: FailureSample.checks(failure.report),
            header: isToken ? FailureSample.json(parts[0]) : nil,
            claims: isToken ? FailureSample.json(parts[1]) : nil,
            tokenWithoutSignature: isToken && (failure.token ?? "").utf8.count <= 8_192
                ? "\(parts[0]).\(parts[1])." : "")
        state.gathered.samples.append(sample)
        state.tokens[sample.id] = failure
        state.tokenOrder.append(sample.id)
        if state.tokenOrder.count > longestTokens {
            state.tokens[state.tokenOrder.removeFirst()] = nil
        }
        return sample
    }
}
