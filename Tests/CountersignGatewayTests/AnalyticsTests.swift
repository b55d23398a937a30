import CountersignCore
import CountersignJOSE
import CountersignTesting
import Foundation
import Testing

@testable import CountersignGateway

struct AnalyticsTests {
    private func send(
        _ fixture: GatewayFixture, token: String?, user: String? = "user-1", version: String = "4.1",
        id: String = UUID().uuidString
    ) throws -> RawConnection.Answer {
        let context =
            #","context":{"library":{"name":"shop-sdk","version":"2.0"},"app":{"version":"\#(version)"}}"#
        let body = batch(trackEvent(id, user: user, extra: context))
        let connection = try RawConnection(port: fixture.gateway.port)
        let credential = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        connection.send(
            "POST /v1/batch HTTP/1.1\r\nHost: a\r\nX-Write-Key: \(fixture.writeKey)\r\n\(credential)"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        return try #require(connection.answer())
    }

    private func query(_ minutes: Int64 = 60) -> AnalyticsQuery {
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        return AnalyticsQuery(
            appID: "shop", fromMilliseconds: now - minutes * 60_000, toMilliseconds: now + 60_000)
    }

    @Test func everyVerdictIsCountedOnceInEveryTable() throws {
        let fixture = try GatewayFixture(enforcement: .required)
        defer { fixture.remove() }
        for _ in 0..<3 { #expect(try send(fixture, token: fixture.token(for: "user-1")).status == 200) }
        let expired = try fixture.token(for: "user-1", lifetime: -3_600)
        for version in ["4.0", "4.0", "4.1"] {
            #expect(try send(fixture, token: expired, version: version).status == 401)
        }
        #expect(try send(fixture, token: nil, user: "user-2").status == 401)
        #expect(try send(fixture, token: nil, user: nil).status == 200)
        fixture.gateway.analytics.flush()

        let reader = try AnalyticsReader(dataDirectory: fixture.dataDirectory)
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

        let versions = try reader.top(query(), by: .appVersion, .minute)
        #expect(versions.first { $0.value == "4.0" }?.failures == 2)
        var filtered = query()
        filtered.appVersion = "4.0"
        #expect(try reader.total(filtered, by: .hour).rejected == 2)
        #expect(try reader.top(query(), by: .sdk, .hour).map(\.value) == ["shop-sdk 2.0"])
        #expect(try reader.top(query(), by: .key, .hour).contains { !$0.value.isEmpty && $0.requests >= 3 })
    }

    @Test func thePreviewSaysWhoWouldBeRejected() throws {
        let fixture = try GatewayFixture(enforcement: .optional)
        defer { fixture.remove() }
        for user in 0..<10 {
            let id = "user-\(user)"
            let isGood = user >= 4
            let token = try fixture.token(for: id, lifetime: isGood ? 600 : -3_600)
            for _ in 0..<2 {
                #expect(try send(fixture, token: token, user: id, version: isGood ? "5" : "4").status == 200)
            }
        }
        fixture.gateway.analytics.flush()
        let reader = try AnalyticsReader(dataDirectory: fixture.dataDirectory)
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        let preview = try reader.preview(of: "shop", at: now, hours: 24)
        #expect(preview.requests == 20 && preview.users == 10)
        #expect(preview.failedRequests == 8 && preview.failedUsers == 4)
        #expect(preview.byCode.map(\.code) == [.expired] && preview.byCode.first?.users == 4)
        #expect(preview.byAppVersion.map(\.appVersion) == ["4"] && preview.byAppVersion.first?.requests == 8)
        #expect(preview.notJudged == 0)
    }

    @Test func aSampleShowsWhyAndCannotBeReplayed() throws {
        let fixture = try GatewayFixture(enforcement: .required)
        defer { fixture.remove() }
        let other = try SigningKey.generate(.rs256)
        let token = try fixture.token(for: "alice@shop.example", key: other)
        for _ in 0..<12 { #expect(try send(fixture, token: token, user: "alice@shop.example").status == 401) }
        fixture.gateway.analytics.flush()
        let reader = try AnalyticsReader(dataDirectory: fixture.dataDirectory)
        let samples = try reader.samples(of: "shop", code: .noMatchingPublicKeys, limit: 50)
        // Five a minute; the minute may have turned meanwhile.
        #expect((5...10).contains(samples.count))
        let sample = try #require(samples.first)
        #expect(sample.maskedUser == "al…@shop.example")
        #expect(sample.network == "127.0.0.0/24")
        #expect(sample.header?.contains("RS256") == true)
        #expect(sample.claims?.contains("alice@shop.example") == true)
        #expect(token.hasPrefix(sample.tokenWithoutSignature) && sample.tokenWithoutSignature.hasSuffix("."))
        let signature = try #require(token.split(separator: ".").last)
        for file in ["analytics.sqlite", "analytics.sqlite-wal"] {
            let bytes = FileManager.default.contents(atPath: fixture.dataDirectory + "/" + file) ?? Data()
            #expect(bytes.range(of: Data(signature.utf8)) == nil)
        }
        #expect(
            try send(fixture, token: sample.tokenWithoutSignature, user: "alice@shop.example").status == 401)

        // The key that was missing is added: judged again, the token is good.
        #expect(fixture.gateway.sampleJudge.again(sample)?.code == .noMatchingPublicKeys)
        _ = try fixture.apps.addKey(other.publicKey.pem, to: "shop")
        try fixture.gateway.refreshApps()
        #expect(fixture.gateway.sampleJudge.again(sample).map { $0.code == nil } == true)
        #expect(try reader.sample(id: sample.id, of: "shop").requestID == sample.requestID)
        #expect(throws: GatewayError.self) { try reader.sample(id: sample.id, of: "other") }
    }

    @Test func whoWatchesSeesWhatComesAndHearsOfGaps() throws {
        let time = Lock<UInt64>(0)
        let feed = LiveFeed(capacity: 3, nanoseconds: { time.withLock { $0 } })
        func publish() {
            feed.publish { id in
                LiveFeed.Entry(
                    id: id, atMilliseconds: 0,
                    key: VerdictKey(
                        appID: "shop", endpoint: "/v1/batch", verdict: .accepted, code: nil, enforcement: nil,
                        client: ClientInfo(), keyID: nil),
                    userID: nil, network: "", requestID: "", sampleID: nil)
            }
        }
        publish()
        let start = feed.entries(after: nil)
        #expect(start.entries.isEmpty && start.lastID == 1)
        for _ in 0..<2 { publish() }
        #expect(feed.entries(after: 1).entries.map(\.id) == [2, 3])
        #expect(feed.entries(after: 1, limit: 1).lastID == 2)
        for _ in 0..<7 { publish() }
        let late = feed.entries(after: 3)
        #expect(late.missed == late.entries[0].id - 4 && late.missed > 0)
        // Nobody has looked for more than a minute: nothing is kept, and the loss is said.
        time.withLock { $0 = 61_000_000_000 }
        publish()
        #expect(feed.entries(after: 10).missed == 1)
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

    @Test func namesThatClientsChooseAreLimited() {
        let recorder = AnalyticsRecorder()
        for number in 0..<1_000 {
            var trail = RequestTrail()
            trail.appID = "shop"
            trail.verdict = .accepted
            trail.client = ClientInfo(sdk: "sdk-\(number)", appVersion: nil)
            recorder.requestEnded(
                RequestRecord(
                    receivedMilliseconds: 0, id: "", trace: nil, method: "POST", path: "/v1/batch",
                    clientAddress: "192.0.2.1", trail: trail, status: 200, code: nil, bytesIn: 0, bytesOut: 0,
                    seconds: 0))
        }
        let counts = recorder.take().counts
        #expect(counts.count == 301)
        #expect(counts.first { $0.key.key.client.sdk == "(other)" }?.value == 700)
    }
}
