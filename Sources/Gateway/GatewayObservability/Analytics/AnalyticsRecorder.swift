package import CountersignCore
package import GatewayModel

/// Counts verdicts of completed requests and takes samples of failures. ``AnalyticsStore`` stores the counts and
/// samples once a second. The verdicts of the last hour stay in memory, by second.
package final class AnalyticsRecorder: GatewayObserver, AnalyticsSource {
    private struct State {
        var gathered = GatheredAnalytics()
        var apps: [BytewiseText: OfApp] = [:]
        /// The rows of the latest requests. Their counts are not in `gathered` yet.
        var rows: [Row] = []
        /// The index of the row that the next new row replaces.
        var next = 0
        var sampledMinute: Int64 = 0
        var sampled: [SampleKey: Int] = [:]
        /// Tokens of the latest samples, for verifying them again. In memory only.
        var tokens: BytewiseDictionary<(appID: String, token: FailedToken)> = [:]
        var tokenOrder: [String] = []
    }

    // Instances are used only while the recorder's `state` is locked.
    private final class OfApp {
        var recent = RecentVerdicts()
        /// Used only for apps whose enforcement may return to `optional` automatically.
        var knownTokens = KnownTokens()
        /// Requests without a valid token can invent client names, so they are counted apart and cannot displace
        /// clients with a valid token.
        var accepted = FrequentClients()
        var others = FrequentClients()
        /// The users of an hour who are not in `gathered` yet.
        var users: (hour: GatheredAnalytics.Hour, counter: DistinctCounter)?

        /// Counts a request. Returns whether to count it by the client's name.
        func names(_ client: ClientInfo, _ verdict: VerdictKind, minute: Int64) -> Bool {
            if verdict == .accepted { return accepted.note(client, minute: minute) }
            let isNamed = others.note(client, minute: minute)
            return isNamed || accepted.names(client)
        }

        func count(_ client: ClientInfo, _ verdict: VerdictKind, times: Int) {
            if verdict == .accepted {
                accepted.count(client, times: times)
            } else {
                others.count(client, times: times)
            }
        }

        func note(_ record: RequestRecord, _ verdict: VerdictKind) {
            recent.note(
                verdict, record.context.enforcement, events: record.context.accepted,
                atMilliseconds: record.receivedMilliseconds)
            if let token = record.context.tokenHash, let userID = record.context.userID {
                knownTokens.note(
                    token, of: userID, verdict, record.context.authCode,
                    atMilliseconds: record.receivedMilliseconds)
            }
        }
    }

    /// Counts the requests of a minute that have the same key and client. Comparing a request with a few rows is
    /// cheaper than hashing its texts.
    private final class Row {
        let counted: GatheredAnalytics.Minute
        let client: ClientInfo
        let app: OfApp
        var count = 0

        init(_ counted: GatheredAnalytics.Minute, client: ClientInfo, app: OfApp) {
            self.counted = counted
            self.client = client
            self.app = app
        }

        func counts(_ record: RequestRecord, _ verdict: VerdictKind, of appID: String, _ minute: Int64)
            -> Bool
        {
            counted.start == minute && counted.key.verdict == verdict
                && counted.key.code == record.context.authCode
                && counted.key.enforcement == record.context.enforcement
                && counted.key.appID == appID && counted.key.endpoint == record.context.route ?? ""
                && client == record.context.client && counted.key.keyID == record.context.keyID
        }
    }

    private static let mostRows = 8

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

    package func requestEnded(_ record: RequestRecord) {
        guard let verdict = record.context.verdict, let appID = record.context.appID else { return }
        let minute = record.receivedMilliseconds - record.receivedMilliseconds % 60_000
        let (row, sampleID) = state.withLock { state -> (Row, String?) in
            let row = Self.row(of: record, verdict, appID, minute, &state)
            row.count += 1
            row.app.note(record, verdict)
            Self.noteUser(row, record.context.userID, record.receivedMilliseconds, &state)
            guard let failure = record.context.failure else { return (row, nil) }
            return (row, Self.sample(record, row.counted.key, failure, minute, &state))
        }
        live.publish { id in
            var key = row.counted.key
            key.client = record.context.client
            return LiveFeed.Entry(
                id: id, atMilliseconds: record.receivedMilliseconds, key: key,
                userID: record.context.userID,
                network: FailureSample.network(of: record.clientAddress), requestID: record.id,
                sampleID: sampleID)
        }
    }

    private static func row(
        of record: RequestRecord, _ verdict: VerdictKind, _ appID: String, _ minute: Int64,
        _ state: inout State
    ) -> Row {
        for row in state.rows where row.counts(record, verdict, of: appID, minute) { return row }
        // The rows of a minute are counted before the clients of the next minute are selected.
        if let row = state.rows.first, row.counted.start != minute { gatherRows(&state) }
        let app = state.apps[BytewiseText(appID)] ?? OfApp()
        state.apps[BytewiseText(appID)] = app
        var counted = GatheredAnalytics.Minute(
            start: minute,
            key: VerdictKey(
                appID: appID, endpoint: record.context.route ?? "", verdict: verdict,
                code: record.context.authCode, enforcement: record.context.enforcement,
                client: record.context.client, keyID: record.context.keyID))
        if !app.names(record.context.client, verdict, minute: minute) {
            counted.key.client = ClientInfo(sdk: "(other)", appVersion: "(other)")
        }
        let row = Row(counted, client: record.context.client, app: app)
        if state.rows.count < mostRows {
            state.rows.append(row)
        } else {
            gather(state.rows[state.next], &state)
            state.rows[state.next] = row
            state.next = (state.next + 1) % mostRows
        }
        return row
    }

    private static func gatherRows(_ state: inout State) {
        for row in state.rows { gather(row, &state) }
        state.rows.removeAll(keepingCapacity: true)
        state.next = 0
    }

    private static func gather(_ row: Row, _ state: inout State) {
        state.gathered.count(row.counted, times: row.count)
        // The first request was counted when the row was made.
        row.app.count(row.client, row.counted.key.verdict, times: row.count - 1)
    }

    private static func gatherUsers(_ app: OfApp, _ state: inout State) {
        guard let (hour, counter) = app.users else { return }
        app.users = nil
        guard state.gathered.users.count < GatheredAnalytics.mostHours || state.gathered.users[hour] != nil
        else { return }
        state.gathered.users[hour, default: DistinctCounter()].add(counter)
    }

    /// The sum of verdicts since a time within the last hour, with a resolution of one second.
    package func recent(of appID: String? = nil, since milliseconds: Int64) -> RecentVerdicts.Sum {
        state.withLock { state in
            var sum = RecentVerdicts.Sum()
            if let appID {
                state.apps[BytewiseText(appID)]?.recent.add(to: &sum, since: milliseconds)
            } else {
                for app in state.apps.values { app.recent.add(to: &sum, since: milliseconds) }
            }
            return sum
        }
    }

    package func traffic(until milliseconds: Int64) -> GatewayTraffic {
        let sum = recent(since: milliseconds - 60_000)
        return GatewayTraffic(accepted: sum.accepted, rejected: sum.rejected, events: sum.events)
    }

    package func knownTokens(of appID: String, since milliseconds: Int64) -> KnownTokens.Sum {
        state.withLock {
            $0.apps[BytewiseText(appID)]?.knownTokens.sum(since: milliseconds) ?? KnownTokens.Sum()
        }
    }

    package func take() -> GatheredAnalytics {
        state.withLock { state in
            gatherAll(&state)
            let gathered = state.gathered
            state.gathered = GatheredAnalytics()
            return gathered
        }
    }

    private func gatherAll(_ state: inout State) {
        Self.gatherRows(&state)
        for app in state.apps.values { Self.gatherUsers(app, &state) }
    }

    /// The token of a sample; nil once it was evicted from memory.
    package func failedToken(of sampleID: String) -> FailedToken? {
        state.withLock { $0.tokens[sampleID]?.token }
    }

    /// Drops the data of deleted apps. The next ``take()`` still returns their counts and samples.
    package func forget(_ appIDs: BytewiseSet) {
        state.withLock { state in
            gatherAll(&state)
            for id in appIDs { state.apps[BytewiseText(id)] = nil }
            state.tokens = state.tokens.filter { !appIDs.contains($0.value.appID) }
            state.tokenOrder.removeAll { state.tokens[$0] == nil }
        }
    }

    private static func noteUser(_ row: Row, _ userID: String?, _ at: Int64, _ state: inout State) {
        guard let userID, row.counted.key.verdict != .anonymous else { return }
        let hash = DistinctCounter.hash(userID)
        let start = at - at % 3_600_000
        if row.app.users?.hour.start != start {
            gatherUsers(row.app, &state)
            row.app.users = (.init(appID: row.counted.key.appID, start: start), DistinctCounter())
        }
        row.app.users?.counter.add(hash)
        guard let code = row.counted.key.code,
            state.gathered.failedUsers.count < GatheredAnalytics.mostFailedUsers
        else { return }
        state.gathered.failedUsers.insert(
            GatheredAnalytics.FailedUser(
                hour: .init(appID: row.counted.key.appID, start: start), code: code,
                appVersion: row.counted.key.client.appVersion ?? "", user: hash))
    }

    /// Takes a sample and returns its id. Takes at most five a minute for each app and code, to bound the cost.
    private static func sample(
        _ record: RequestRecord, _ key: VerdictKey, _ failure: FailedToken, _ minute: Int64,
        _ state: inout State
    ) -> String? {
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
            verdict: key.verdict, endpoint: key.endpoint, userID: record.context.userID,
            client: record.context.client, network: FailureSample.network(of: record.clientAddress),
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
        return sample.id
    }
}
