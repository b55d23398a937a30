import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import CountersignJOSE
@testable import GatewayIngest
@testable import GatewayModel
@testable import GatewayObservability
@testable import GatewayStorage

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AnalyticsTests {
    private func send(
        _ fixture: GatewayFixture, token: String?, user: String? = "user-1", version: String = "4.1",
        id: String = UUID().uuidString
    ) throws -> TestAnswer {
        let context =
            #","context":{"library":{"name":"shop-sdk","version":"2.0"},"app":{"version":"\#(version)"}}"#
        let body = batch(trackEvent(id, user: user, extra: context))
        var headers = ["X-Write-Key": fixture.writeKey]
        headers["Authorization"] = token.map { "Bearer \($0)" }
        return try #require(try fixture.client().post(body, headers: headers))
    }

    private func query(_ minutes: Int64 = 60) -> AnalyticsQuery {
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        return AnalyticsQuery(
            appID: "shop", fromMilliseconds: now - minutes * 60_000, toMilliseconds: now + 60_000)
    }

    @Test func everyVerdictIsCountedOnceInEveryTable() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .required)
        for _ in 0..<3 { #expect(try send(fixture, token: fixture.token(for: "user-1")).status == 200) }
        let expired = try fixture.token(for: "user-1", lifetime: -3_600)
        for version in ["4.0", "4.0", "4.1"] {
            #expect(try send(fixture, token: expired, version: version).status == 401)
        }
        #expect(try send(fixture, token: nil, user: "user-2").status == 401)
        #expect(try send(fixture, token: nil, user: nil).status == 200)
        fixture.gateway.analytics.flush()

        let reader = try fixture.place.open().analytics
        for length in BucketLength.allCases {
            let total = try reader.total(query(), by: length)
            #expect(total.accepted == 3 && total.rejected == 4 && total.anonymous == 1, "\(length)")
            #expect(total.codes[.expired] == .init(warned: 0, rejected: 3))
            #expect(total.codes[.missingToken] == .init(warned: 0, rejected: 1))
            var sum = VerdictBucket(startMilliseconds: total.startMilliseconds)
            for bucket in try reader.buckets(query(), by: length) { sum.add(bucket) }
            #expect(sum == total)
        }
        let buckets = try reader.buckets(query(), by: .minute)
        #expect((61...62).contains(buckets.count))
        #expect(
            zip(buckets, buckets.dropFirst()).allSatisfy {
                $1.startMilliseconds - $0.startMilliseconds == 60_000
            })

        let versions = try reader.top(query(), by: .appVersion, .minute, limit: 20)
        #expect(versions.first { $0.value == "4.0" }?.failures == 2)
        var filtered = query()
        filtered.appVersion = "4.0"
        #expect(try reader.total(filtered, by: .hour).rejected == 2)
        #expect(try reader.top(query(), by: .sdk, .hour, limit: 20).map(\.value) == ["shop-sdk 2.0"])
        #expect(
            try reader.top(query(), by: .key, .hour, limit: 20).contains {
                !$0.value.isEmpty && $0.requests >= 3
            })
    }

    @Test func aRangeHasAtMost5000Buckets() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .required)
        #expect(try send(fixture, token: fixture.token(for: "user-1")).status == 200)
        fixture.gateway.analytics.flush()
        let reader = try fixture.place.open().analytics
        func count(_ shift: Int64) throws -> Int {
            let end = 5_000 * 60_000 + shift
            return try reader.buckets(
                AnalyticsQuery(appID: "shop", fromMilliseconds: shift, toMilliseconds: end), by: .minute
            ).count
        }
        #expect(try count(0) == 5_000)
        #expect(throws: GatewayError.self) { try count(30_000) }
    }

    @Test func thePreviewCountsRequestsThatWouldBeRejected() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .optional)
        for user in 0..<10 {
            let id = "user-\(user)"
            let isGood = user >= 4
            let token = try fixture.token(for: id, lifetime: isGood ? 600 : -3_600)
            for _ in 0..<2 {
                #expect(try send(fixture, token: token, user: id, version: isGood ? "5" : "4").status == 200)
            }
        }
        fixture.gateway.analytics.flush()
        let reader = try fixture.place.open().analytics
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        let preview = try reader.preview(of: "shop", at: now, hours: 24)
        #expect(preview.requests == 20 && preview.users == 10)
        #expect(preview.failedRequests == 8 && preview.failedUsers == 4)
        #expect(preview.byCode.map(\.code) == [.expired] && preview.byCode.first?.users == 4)
        #expect(preview.byAppVersion.map(\.appVersion) == ["4"] && preview.byAppVersion.first?.requests == 8)
        #expect(preview.notJudged == 0)
    }

    @Test func aSampleExplainsTheRejectionAndCannotBeReplayed() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .required)
        let other = try SharedKeys.stranger()
        let token = try fixture.token(for: "alice@shop.example", key: other)
        for _ in 0..<12 { #expect(try send(fixture, token: token, user: "alice@shop.example").status == 401) }
        fixture.gateway.analytics.flush()
        let reader = try fixture.place.open().analytics
        let samples = try reader.samples(
            of: "shop", requestID: nil, code: .noMatchingPublicKeys, from: 0, to: .max, before: nil, limit: 50
        )
        // At most five samples a minute are kept. The test may run over the end of a minute.
        #expect((5...10).contains(samples.count))
        let sample = try #require(samples.first)
        #expect(sample.userID == "alice@shop.example")
        #expect(sample.network == "127.0.0.0/24")
        #expect(sample.header?.contains("RS256") == true)
        #expect(sample.claims?.contains("alice@shop.example") == true)
        #expect(token.hasPrefix(sample.tokenWithoutSignature) && sample.tokenWithoutSignature.hasSuffix("."))
        let signature = try #require(token.split(separator: ".").last)
        for database in try WholeDatabase.all(of: fixture.place) {
            #expect(try database.tables(with: String(signature)) == [])
        }
        #expect(
            try send(fixture, token: sample.tokenWithoutSignature, user: "alice@shop.example").status == 401)

        // After the missing key is added, a recheck accepts the sample's token.
        #expect(fixture.gateway.sampleVerifier.again(sample)?.code == .noMatchingPublicKeys)
        _ = try fixture.apps.addKey(other.publicKey.pem, to: "shop")
        try fixture.gateway.refreshApps()
        #expect(fixture.gateway.sampleVerifier.again(sample).map { $0.code == nil } == true)
        #expect(try reader.sample(id: sample.id, of: "shop").requestID == sample.requestID)
        #expect(throws: GatewayError.self) { try reader.sample(id: sample.id, of: "other") }
    }

    /// Records the result of a request to an app, without a gateway.
    private func note(
        _ recorder: AnalyticsRecorder, of app: String = "shop", at milliseconds: Int64,
        code: AuthErrorCode? = nil, user: String = "u",
        failure: FailedToken? = nil, client: ClientInfo = ClientInfo(), enforcement: Enforcement = .required
    ) {
        var context = RequestContext()
        context.appID = app
        context.verdict =
            code == nil ? .accepted : enforcement == .required ? .rejected : .acceptedWithWarning
        context.enforcement = enforcement
        context.authCode = code
        context.userID = user
        context.client = client
        context.failure = failure
        recorder.requestEnded(
            RequestRecord(
                receivedMilliseconds: milliseconds, id: "", trace: nil, method: "POST", path: "/v1/batch",
                clientAddress: "192.0.2.1", context: context, status: 200, code: nil, bytesIn: 0, bytesOut: 0,
                seconds: 0))
    }

    /// A store whose clock the test sets.
    private struct Bench {
        let place: TestStorage
        let recorder = AnalyticsRecorder()
        let now = Lock<Int64>(1_800_000_000_000)
        let reports = Lock<[String]>([])
        let store: AnalyticsStore
        let reader: any AnalyticsLog

        init() throws {
            place = try TestStorage()
            let storage = try place.open()
            reader = storage.analytics
            store = try storage.openAnalytics(
                from: recorder,
                now: { [now] in Date(timeIntervalSince1970: Double(now.withLock { $0 }) / 1000) },
                report: { [reports] report in reports.withLock { $0.append(report) } })
        }

        /// The store of another gateway. Its clock starts at the present time, so it has not seen a jump.
        func another() throws -> AnalyticsStore {
            try place.open().openAnalytics(
                from: NoTraffic(),
                now: { [now] in Date(timeIntervalSince1970: Double(now.withLock { $0 }) / 1000) },
                report: { _ in })
        }

        func rows(_ table: String) throws -> Int? {
            try place.connection(to: "analytics").first("SELECT count(*) FROM \(table)") { $0.int(0) }
        }
    }

    @Test func minuteCountsExpireBeforeHourCountsAndHourBeforeDayCounts() throws {
        let bench = try Bench()
        let start = bench.now.withLock { $0 }
        note(bench.recorder, at: start, code: .expired)
        let tables = ["verdict_minute", "verdict_hour", "verdict_day", "failed_user_hour"]
        let hour: Int64 = 3_600_000
        let sums = ["verdict_minute_sum", "verdict_hour_sum", "verdict_day_sum"]
        let expected: [(hours: Int64, left: [Int])] = [
            (0, [1, 1, 1, 1]), (47, [1, 1, 1, 1]), (49, [0, 1, 1, 1]), (193, [0, 1, 1, 0]),
            (2_161, [0, 0, 1, 0]), (17_568, [0, 0, 0, 0]),
        ]
        var last: [Int] = []
        for (hours, left) in expected {
            let unused = try bench.another()
            bench.now.withLock { $0 = start + hours * hour }
            bench.store.flush()
            unused.flush()
            if hours > 0 { #expect(try tables.map { try bench.rows($0) } == last, "a jump deletes nothing") }
            try bench.another().flush()
            last = left
            #expect(try tables.map { try bench.rows($0) } == left, "after \(hours) hours")
            #expect(try sums.map { try bench.rows($0) } == Array(left.prefix(3)), "after \(hours) hours")
        }
    }

    @Test func theLatest200SamplesOfACodeAreKept() throws {
        let bench = try Bench()
        let start = bench.now.withLock { $0 }
        var report = VerificationReport()
        report.add(.missingToken, "no token")
        let failure = FailedToken(token: nil, report: report, deviceTime: nil)
        for minute in 0..<60 {
            for _ in 0..<7 {
                note(
                    bench.recorder, at: start + Int64(minute) * 60_000, code: .missingToken, failure: failure)
            }
        }
        // Five samples a minute were recorded. At most 200 are kept.
        bench.store.flush()
        bench.now.withLock { $0 += 3_600_000 }
        bench.store.flush()
        #expect(try bench.rows("sample") == 200)
        let oldest = try bench.place.connection(to: "analytics").first(
            "SELECT min(at_ms) FROM sample"
        ) { $0.int64(0) }
        #expect(oldest == start + 20 * 60_000)
    }

    @Test func failedWritesOfCountsAreRetried() throws {
        let bench = try Bench()
        let start = bench.now.withLock { $0 }
        bench.store.flush()
        note(bench.recorder, at: start, user: "a")
        let other = try bench.place.connection(to: "analytics")
        try other.execute("ALTER TABLE users_hour RENAME TO away")
        bench.store.flush()
        #expect(bench.reports.withLock { $0.count } == 1)
        #expect(try bench.rows("verdict_minute") == 0)
        try other.execute("ALTER TABLE away RENAME TO users_hour")
        note(bench.recorder, at: start, user: "b")
        bench.store.flush()
        #expect(bench.reports.withLock { $0.count } == 1)
        let reader = bench.reader
        let query = AnalyticsQuery(appID: "shop", fromMilliseconds: start, toMilliseconds: start + 60_000)
        #expect(try reader.total(query, by: .minute).accepted == 2)
        #expect(try reader.preview(of: "shop", at: start + 1, hours: 1).users == 2)
    }

    @Test func aPreviewCountsRequestsAndUsersOverTheSameHours() throws {
        let bench = try Bench()
        let hour = (bench.now.withLock { $0 } / 3_600_000 + 1) * 3_600_000
        note(bench.recorder, at: hour + 10 * 60_000, user: "a")
        bench.store.flush()
        let reader = bench.reader
        // Users are stored by full hours, so the preview also counts requests from the beginning of the hour.
        let preview = try reader.preview(of: "shop", at: hour + 75 * 60_000, hours: 1)
        #expect(preview.fromMilliseconds == hour)
        #expect(preview.users == 1 && preview.requests == 1)
    }

    @Test func theActivityOfAnAppHasCountsForEachHour() throws {
        let bench = try Bench()
        let start = bench.now.withLock { $0 } / 60_000 * 60_000
        for minutes in [0, 1, 61] as [Int64] { note(bench.recorder, at: start + minutes * 60_000, user: "a") }
        bench.store.flush()
        let reader = bench.reader
        let day = try reader.activity(of: nil, from: start, to: start + 3 * 3_600_000)["shop"]
        #expect(day?.hours.map(\.requests) == [2, 1, 0] && day?.requests == 3)
        #expect(day?.hours.map(\.failures) == [0, 0, 0])
    }

    @Test func recentCountsHaveOneSecondResolution() {
        let recorder = AnalyticsRecorder()
        for second in Int64(0)..<10 { note(recorder, at: second * 1000, code: second < 3 ? .expired : nil) }
        #expect(
            recorder.recent(of: "shop", since: 2_000)
                == .init(required: 8, rejected: 1, accepted: 7, events: 0))
        #expect(recorder.recent(since: 9_999).required == 1)
        #expect(recorder.recent(of: "other", since: 0) == .init())
        // Users outside the enforcement percentage count as optional, so they do not lower the share of rejections.
        for code in [nil, AuthErrorCode.expired] {
            note(recorder, at: 9_999, code: code, enforcement: .optional)
        }
        #expect(recorder.recent(since: 9_999) == .init(required: 1, rejected: 0, accepted: 3, events: 0))
    }

    @Test func distinctUsersAreCountedWithinFivePercent() {
        for count in [0, 1, 100, 5_000, 200_000] {
            var counter = DistinctCounter()
            for number in 0..<count { counter.add(DistinctCounter.hash("user-\(number)")) }
            for number in 0..<min(count, 100) { counter.add(DistinctCounter.hash("user-\(number)")) }
            #expect(abs(Double(counter.count - count)) <= 0.05 * Double(count), "\(count): \(counter.count)")
            if count <= 1 { #expect(counter.count == count) }
        }
    }

    @Test func theNumberOfClientNamesIsLimited() {
        let recorder = AnalyticsRecorder()
        for number in 0..<1_000 {
            note(recorder, at: 0, client: ClientInfo(sdk: "sdk-\(number)", appVersion: nil))
        }
        let counts = recorder.take().counts
        #expect(counts.count == 151)
        #expect(counts.first { $0.key.key.client.sdk == "(other)" }?.value == 850)
    }

    @Test func inventedClientNamesDoNotHideFrequentOnes() {
        let recorder = AnalyticsRecorder()
        let genuine = ClientInfo(sdk: "countersign-swift 1.0.0", appVersion: "7.1")
        for number in 0..<5_000 {
            note(recorder, at: 0, client: ClientInfo(sdk: "sdk-\(number)", appVersion: nil))
            if number.isMultiple(of: 50) { note(recorder, at: 0, client: genuine) }
        }
        _ = recorder.take()
        for number in 5_000..<6_000 {
            note(recorder, at: 60_000, client: ClientInfo(sdk: "sdk-\(number)", appVersion: nil))
        }
        for _ in 0..<10 { note(recorder, at: 60_000, client: genuine) }
        let counts = recorder.take().counts
        #expect(counts.first { $0.key.key.client == genuine }?.value == 10)
        #expect(counts.count <= 151)
    }

    @Test func namesInventedWithoutAValidTokenDoNotHideVerifiedClients() {
        let recorder = AnalyticsRecorder()
        let genuine = ClientInfo(sdk: "countersign-swift 1.0.0", appVersion: "7.1")
        let failure = FailedToken(token: nil, report: VerificationReport(), deviceTime: nil)
        for number in 0..<1_000 {
            note(recorder, at: 0, code: .missingToken, client: ClientInfo(sdk: "sdk-\(number)"))
        }
        note(recorder, at: 0, client: genuine)
        note(recorder, at: 0, code: .expired, failure: failure, client: genuine)
        note(
            recorder, at: 0, code: .expired, failure: failure,
            client: ClientInfo(sdk: "sdk-999", appVersion: "6"))
        let taken = recorder.take()
        let named = taken.counts.filter { $0.key.key.client == genuine }.map(\.key.key.verdict)
        #expect(named.count == 2 && named.contains(.accepted) && named.contains(.rejected))
        #expect(taken.counts.count <= 300)
        // Samples are few, so each has its client's own name.
        #expect(taken.samples.map(\.client.appVersion) == ["7.1", "6"])
    }

    @Test func clientNamesRecordedWithTheClockAheadAreReplaced() {
        let recorder = AnalyticsRecorder()
        let ahead: Int64 = 365 * 86_400_000
        for number in 0..<400 {
            note(recorder, at: ahead, client: ClientInfo(sdk: "sdk-\(number)", appVersion: nil))
        }
        let genuine = ClientInfo(sdk: "countersign-swift 1.0.0", appVersion: "7.1")
        for minute in Int64(0)..<2 {
            _ = recorder.take()
            for _ in 0..<10 { note(recorder, at: minute * 60_000, client: genuine) }
        }
        #expect(recorder.take().counts.first { $0.key.key.client == genuine }?.value == 10)
    }

    @Test func analyticsOfDeletedAppsAreDroppedFromMemory() throws {
        let place = try TestStorage()
        let storage = try place.open()
        let apps = try storage.openControl(as: .account)
        let recorder = AnalyticsRecorder()
        let registry = AppRegistry(
            directory: try storage.openControl(as: .schedule), removed: { recorder.forget($0) },
            now: { Date() })
        for app in ["shop", "blog"] {
            _ = try apps.createApp(id: app)
            note(
                recorder, of: app, at: 1_000, code: .expired,
                failure: FailedToken(token: app, report: VerificationReport(), deviceTime: nil))
        }
        try registry.refresh()
        let samples = recorder.take().samples
        func held() -> [String?] {
            samples.sorted { $0.appID < $1.appID }.map { recorder.failedToken(of: $0.id)?.token }
        }
        #expect(held() == ["blog", "shop"])
        _ = try apps.deleteApp(id: "shop")
        try registry.refresh()
        #expect(held() == ["blog", nil])
        #expect(recorder.recent(of: "shop", since: 0) == .init())
        #expect(recorder.recent(of: "blog", since: 0).required == 1)
    }
}
