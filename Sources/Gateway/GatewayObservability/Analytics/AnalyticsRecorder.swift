package import CountersignCore
package import GatewayModel

/// Counts verdicts of completed requests and takes samples of failures. ``AnalyticsStore`` takes both once a
/// second. The verdicts of the last hour stay in memory, by second.
package final class AnalyticsRecorder: GatewayObserver, AnalyticsSource {
    private struct State {
        var gathered = GatheredAnalytics()
        var apps: BytewiseDictionary<OfApp> = [:]
        var sampledMinute: Int64 = 0
        var sampled: [SampleKey: Int] = [:]
        /// Tokens of the latest samples, for verifying them again. In memory only.
        var tokens: BytewiseDictionary<(appID: String, token: FailedToken)> = [:]
        var tokenOrder: [String] = []
    }

    private struct OfApp {
        var recent = RecentVerdicts()
        /// Used only for apps whose enforcement may return automatically.
        var knownTokens = KnownTokens()
        /// Selects the clients counted by name. All others are counted together.
        var clients = FrequentClients()

        /// Counts a request. Returns whether its client is counted by name.
        mutating func note(_ record: RequestRecord, _ verdict: VerdictKind, minute: Int64) -> Bool {
            recent.note(
                verdict, record.context.enforcement, events: record.context.accepted,
                atMilliseconds: record.receivedMilliseconds)
            if let token = record.context.tokenHash, let userID = record.context.userID {
                knownTokens.note(
                    token, of: userID, verdict, record.context.authCode,
                    atMilliseconds: record.receivedMilliseconds)
            }
            return clients.note(record.context.client, minute: minute)
        }
    }

    private struct SampleKey: Hashable {
        let appID: String
        let code: AuthErrorCode
    }

    private static let samplesPerMinute = 5
    private static let mostTokens = 2_000

    package let live: LiveFeed
    private let state = Lock(State())

    package init(live: LiveFeed = LiveFeed()) {
        self.live = live
    }

    package func commitEnded(_ record: CommitRecord) {}

    package func requestEnded(_ record: RequestRecord) {
        guard let verdict = record.context.verdict, let appID = record.context.appID else { return }
        let minute = record.receivedMilliseconds - record.receivedMilliseconds % 60_000
        var counted = GatheredAnalytics.Minute(
            start: minute,
            key: VerdictKey(
                appID: appID, endpoint: record.context.route ?? "", verdict: verdict,
                code: record.context.authCode, enforcement: record.context.enforcement,
                client: record.context.client, keyID: record.context.keyID))
        let sample = state.withLock { state -> FailureSample? in
            if !state.apps[appID, default: OfApp()].note(record, verdict, minute: minute) {
                counted.key.client = ClientInfo(sdk: "(other)", appVersion: "(other)")
            }
            state.gathered.count(counted)
            Self.noteUser(counted.key, record.context.userID, record.receivedMilliseconds, &state)
            guard let failure = record.context.failure else { return nil }
            return Self.sample(record, counted.key, failure, minute, &state)
        }
        live.publish { id in
            LiveFeed.Entry(
                id: id, atMilliseconds: record.receivedMilliseconds, key: counted.key,
                userID: record.context.userID,
                network: FailureSample.network(of: record.clientAddress), requestID: record.id,
                sampleID: sample?.id)
        }
    }

    /// The sum of verdicts since a time, in milliseconds since 1970, with a resolution of one second. Covers
    /// at most one hour.
    package func recent(of appID: String? = nil, since milliseconds: Int64) -> RecentVerdicts.Sum {
        state.withLock { state in
            var sum = RecentVerdicts.Sum()
            if let appID {
                state.apps[appID]?.recent.add(to: &sum, since: milliseconds)
            } else {
                for app in state.apps.values { app.recent.add(to: &sum, since: milliseconds) }
            }
            return sum
        }
    }

    /// The requests of the minute before a time, in milliseconds since 1970.
    package func traffic(until milliseconds: Int64) -> GatewayTraffic {
        let sum = recent(since: milliseconds - 60_000)
        return GatewayTraffic(accepted: sum.accepted, rejected: sum.rejected, events: sum.events)
    }

    /// The users of an app who had a valid token since a time, and how many of them have lost it.
    package func knownTokens(of appID: String, since milliseconds: Int64) -> KnownTokens.Sum {
        state.withLock { $0.apps[appID]?.knownTokens.sum(since: milliseconds) ?? KnownTokens.Sum() }
    }

    package func take() -> GatheredAnalytics {
        state.withLock { state in
            let gathered = state.gathered
            state.gathered = GatheredAnalytics()
            return gathered
        }
    }

    /// The token of a sample; nil once it was evicted from memory.
    package func failedToken(of sampleID: String) -> FailedToken? {
        state.withLock { $0.tokens[sampleID]?.token }
    }

    /// Drops the data of deleted apps. Data gathered since the last ``take()`` is still stored.
    package func forget(_ appIDs: BytewiseSet) {
        state.withLock { state in
            for id in appIDs { state.apps[id] = nil }
            state.tokens = state.tokens.filter { !appIDs.contains($0.value.appID) }
            state.tokenOrder.removeAll { state.tokens[$0] == nil }
        }
    }

    private static func noteUser(_ key: VerdictKey, _ userID: String?, _ at: Int64, _ state: inout State) {
        guard let userID, key.verdict != .anonymous else { return }
        let hash = DistinctCounter.hash(userID)
        let hour = GatheredAnalytics.Hour(appID: key.appID, start: at - at % 3_600_000)
        if state.gathered.users.count < GatheredAnalytics.mostHours || state.gathered.users[hour] != nil {
            state.gathered.users[hour, default: DistinctCounter()].add(hash)
        }
        guard let code = key.code, state.gathered.failedUsers.count < GatheredAnalytics.mostFailedUsers
        else { return }
        state.gathered.failedUsers.insert(
            GatheredAnalytics.FailedUser(
                hour: hour, code: code, appVersion: key.client.appVersion ?? "", user: hash))
    }

    /// Takes at most five samples of a code in a minute, to limit the cost of a flood of invalid tokens.
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
        if state.gathered.samples.count < GatheredAnalytics.mostSamples {
            state.gathered.samples.append(sample)
        }
        state.tokens[sample.id] = (key.appID, failure)
        state.tokenOrder.append(sample.id)
        if state.tokenOrder.count > mostTokens {
            state.tokens[state.tokenOrder.removeFirst()] = nil
        }
        return sample
    }
}
