import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import CountersignTesting
import Foundation
import GatewayHTTP
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

@testable import GatewayIngest

/// A published JWK Set with a simulated clock and network. Work runs synchronously.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct RemoteJWKSetTests {

    private final class Publisher: @unchecked Sendable {
        // Used by one test, in one thread.
        var document: String?
        var asked = 0

        var answer: KeySourceFetch {
            { [self] source throws(OutboundRequest.Failure) in try fetch(source) }
        }

        private func fetch(_: KeySource) throws(OutboundRequest.Failure) -> [UInt8] {
            asked += 1
            guard let document else { throw OutboundRequest.Failure(reason: "down") }
            return Array(document.utf8)
        }
    }

    private let publisher = Publisher()
    private let keys = RemoteJWKSet(
        source: KeySource(url: "https://keys.example/jwks.json", allowsPrivateAddresses: false))

    private func refresh(at instant: Double) {
        keys.refreshIfDue(at: instant, fetch: publisher.answer, run: { $0() })
    }

    private func newSet(_ count: Int = 1) throws -> String {
        JWKSet(keys: try (0..<count).map { _ in try SigningKey.generate(.es256).publicKey }).json
    }

    @Test func aSetIsFetchedOnceAndAgainAfterTenMinutes() throws {
        publisher.document = try newSet(2)
        refresh(at: 1_000)
        #expect(keys.keys.count == 2)
        #expect(keys.generation == 1)
        for instant in stride(from: 1_000.0, to: 1_599, by: 1) { refresh(at: instant) }
        #expect(publisher.asked == 1)
        refresh(at: 1_600)
        #expect(publisher.asked == 2)
        // Fetching the same keys is not a change.
        #expect(keys.generation == 1)
    }

    @Test func aFailedFetchAndItsRecoveryAreReportedOnce() throws {
        let reports = Lock<[String?]>([])
        let keys = RemoteJWKSet(
            source: keys.source, report: { problem in reports.withLock { $0.append(problem) } })
        let set = try newSet()
        let documents = [(1_000, nil), (1_030, nil), (1_060, "[]"), (1_090, set), (1_690, set)]
        for (instant, document) in documents {
            publisher.document = document
            keys.refreshIfDue(at: Double(instant), fetch: publisher.answer, run: { $0() })
        }
        let seen = reports.withLock { $0 }
        #expect(seen.count == 3 && seen.first == "down" && seen.last == .some(nil))
    }

    @Test func aSetThatWasFetchedWhileTheClockWasAheadIsFetchedOnceMore() throws {
        publisher.document = try newSet()
        refresh(at: 31_537_000)
        for instant in stride(from: 1_000.0, to: 1_600, by: 1) { refresh(at: instant) }
        #expect(publisher.asked == 2)
    }

    /// Without a shared set, gateways could disagree about a token for up to ten minutes.
    @Test func gatewaysShareTheLastValidKeySet() throws {
        let copy = Lock<PublishedKeySet?>(nil)
        let shared = SharedKeySet(
            read: { copy.withLock { $0 } },
            write: { new in
                copy.withLock { $0 = new }
                return true
            })
        let first = RemoteJWKSet(source: keys.source, shared: shared)
        let second = RemoteJWKSet(source: keys.source, shared: shared)
        let nobody = Publisher()
        publisher.document = try newSet()
        first.refreshIfDue(at: 1_000, fetch: publisher.answer, run: { $0() })
        second.refreshIfDue(at: 1_001, fetch: nobody.answer, run: { $0() })
        #expect(second.keys.map(\.thumbprint) == first.keys.map(\.thumbprint))
        #expect(second.fetchedAt == 1_000)
        let old = first.keys.map(\.thumbprint)
        publisher.document = try newSet()
        first.refreshIfDue(at: 1_600, fetch: publisher.answer, run: { $0() })
        second.refreshIfDue(at: 1_602, fetch: nobody.answer, run: { $0() })
        #expect(second.keys.map(\.thumbprint) == first.keys.map(\.thumbprint))
        #expect(second.keys.map(\.thumbprint) != old)
        // A gateway with a wrong clock stores a fetch time in the future.
        copy.withLock { $0 = $0.map { PublishedKeySet(json: $0.json, fetchedMilliseconds: 9_000_000) } }
        second.refreshIfDue(at: 1_700, fetch: nobody.answer, run: { $0() })
        #expect(second.fetchedAt == 1_600 && nobody.asked == 0)
    }

    /// Otherwise a restart or another gateway would use an older set, or none.
    @Test func aSetThatCouldNotBeStoredIsFetchedAndStoredAgain() throws {
        let isFull = Lock(true)
        let written = Lock<[Int64]>([])
        let shared = SharedKeySet(
            read: { nil },
            write: { set in
                written.withLock { $0.append(set.fetchedMilliseconds) }
                return isFull.withLock { !$0 }
            })
        let keys = RemoteJWKSet(source: keys.source, shared: shared)
        publisher.document = try newSet()
        for instant in [1_000.0, 1_029, 1_030, 1_059] {
            keys.refreshIfDue(at: instant, fetch: publisher.answer, run: { $0() })
        }
        #expect(written.withLock { $0 } == [1_000_000, 1_030_000])
        isFull.withLock { $0 = false }
        for instant in stride(from: 1_060.0, to: 1_659, by: 1) {
            keys.refreshIfDue(at: instant, fetch: publisher.answer, run: { $0() })
        }
        #expect(written.withLock { $0 } == [1_000_000, 1_030_000, 1_060_000])
    }

    private func note(_ keyID: String, from address: String? = nil, at instant: Double) {
        keys.noteUnknownKey(keyID.utf8, from: address.flatMap { NetworkAddress($0) }, at: instant)
    }

    @Test func anUnknownKeyIDTriggersAFetchWithGrowingPauses() throws {
        publisher.document = try newSet()
        refresh(at: 1_000)
        publisher.document = try newSet()
        note("next", at: 1_001)
        refresh(at: 1_001)
        #expect(publisher.asked == 1)
        refresh(at: 1_002)
        #expect(publisher.asked == 2 && keys.generation == 2)
        for instant in stride(from: 1_003.0, to: 1_103, by: 1) {
            note("stale", at: instant)
            refresh(at: instant)
        }
        // Two fast fetches, in case the key is published a moment later, then one every ten seconds.
        #expect((12...14).contains(publisher.asked))
    }

    /// A client keeps sending new unknown key IDs. A rotation still takes effect within seconds.
    @Test func inventedKeyIDsFromOneAddressDoNotDelayAKeyRotation() throws {
        publisher.document = try newSet()
        refresh(at: 1_000)
        var instant = 1_000.0
        while instant < 1_060 {
            instant += 0.25
            for number in 0..<20 { note("\(instant) \(number)", from: "192.0.2.1", at: instant) }
            refresh(at: instant)
        }
        #expect(publisher.asked <= 1 + 60 / 10 + 3)
        let asked = publisher.asked
        publisher.document = try newSet()
        note("rotated", from: "198.51.100.7", at: instant)
        for _ in 0...8 {
            instant += 0.25
            note("\(instant)", from: "192.0.2.1", at: instant)
            refresh(at: instant)
        }
        // One fetch for the rotation, and at most one for the unknown keys.
        #expect((asked + 1...asked + 2).contains(publisher.asked))
        #expect(keys.generation == 2)
    }

    /// The publisher gets at most one request every two seconds, for any number of addresses.
    @Test func inventedKeyIDsFromManyAddressesFetchAtMostEveryTwoSeconds() throws {
        publisher.document = try newSet()
        refresh(at: 1_000)
        for number in 0..<4_000 {
            let instant = 1_000 + Double(number) / 40
            note("key \(number)", from: "192.0.\(number / 200).\(number % 200)", at: instant)
            refresh(at: instant)
        }
        #expect((45...51).contains(publisher.asked))
    }

    @Test func aFailingPublisherIsRequestedAtMostEveryTenSeconds() throws {
        publisher.document = try newSet()
        refresh(at: 1_000)
        publisher.document = nil
        for instant in stride(from: 1_001.0, to: 1_061, by: 1) {
            note("key \(instant)", at: instant)
            refresh(at: instant)
        }
        #expect((7...8).contains(publisher.asked))
    }

    @Test func theLastValidKeySetSurvivesARestart() throws {
        let place = try TestStorage()
        let directory = try place.openControl()
        let writeKey = try directory.createApp(id: "shop").writeKey
        try directory.setKeySource(url: "https://keys.example/jwks.json", of: "shop")
        let signer = try SharedKeys.stranger()
        publisher.document = JWKSet(keys: [signer.publicKey]).json
        let first = AppRegistry(
            directory: directory, now: { Date(timeIntervalSince1970: 1_000) }, fetch: publisher.answer,
            run: { $0() })
        try first.refresh()
        first.refreshPublished()

        let next = AppRegistry(
            directory: try place.openControl(), now: { Date(timeIntervalSince1970: 1_100) },
            fetch: { _ throws(OutboundRequest.Failure) in throw OutboundRequest.Failure(reason: "down") },
            run: { $0() })
        try next.refresh()
        let app = try #require(next.app(writeKey: writeKey))
        let token = try signer.sign(claims: ["sub": "user-1", "exp": 2_000])
        #expect(app.verifier.verify(token, userID: "user-1", at: 1_100).isAccepted)

        // Sets of another URL or a deleted app are not used.
        try directory.setKeySource(url: "https://other.example/jwks.json", of: "shop")
        try next.refresh()
        #expect(next.publishedKeys(of: "shop").first?.keys.isEmpty == true)
        let source = KeySource(url: "https://keys.example/jwks.json", allowsPrivateAddresses: false)
        #expect(try directory.publishedKeySet(of: source, for: "shop") == nil)
        _ = try directory.deleteApp(id: "shop")
        #expect(try directory.publishedKeySet(of: source, for: "shop") == nil)
    }

    @Test func aFailedFetchKeepsTheLastValidKeySet() throws {
        publisher.document = try newSet()
        refresh(at: 1_000)
        let good = keys.keys.map(\.thumbprint)
        for (instant, document) in [(1_600.0, nil), (1_630, "<html>"), (1_660, #"{"keys":[]}"#), (1_690, "")]
        {
            publisher.document = document
            refresh(at: instant)
            #expect(keys.keys.map(\.thumbprint) == good)
            #expect(keys.problem != nil)
        }
        #expect(publisher.asked == 5)
        publisher.document = try newSet()
        refresh(at: 1_720)
        #expect(keys.problem == nil)
        #expect(keys.keys.map(\.thumbprint) != good)
    }

    @Test func onlyOneFetchRunsAtATime() throws {
        publisher.document = try newSet()
        var waiting: [@Sendable () -> Void] = []
        for instant in [1_000.0, 1_100, 9_000] {
            keys.refreshIfDue(at: instant, fetch: publisher.answer, run: { waiting.append($0) })
        }
        #expect(waiting.count == 1)
        waiting[0]()
        #expect(publisher.asked == 1)
    }

    @Test func aPrivateAddressIsRejectedUnlessAllowed() throws {
        for url in ["https://127.0.0.1:1/", "https://[::1]:1/", "https://localhost:1/"] {
            let request = OutboundRequest(
                url: url, allowsPrivateAddresses: false, timeoutMilliseconds: 2_000, maximumBytes: 1_000)
            let failure = #expect(throws: OutboundRequest.Failure.self) { try request.perform() }
            #expect(failure?.reason.contains("private") == true)
        }
        let allowed = OutboundRequest(
            url: "https://127.0.0.1:1/", allowsPrivateAddresses: true, timeoutMilliseconds: 2_000,
            maximumBytes: 1_000)
        let failure = #expect(throws: OutboundRequest.Failure.self) { try allowed.perform() }
        #expect(failure?.reason.contains("private") == false)
    }

    @Test func aTokenOfAPublishedKeyIsAcceptedByARunningRegistry() throws {
        let place = try TestStorage()
        let directory = try place.openControl()
        let writeKey = try directory.createApp(id: "shop").writeKey
        for bad in ["http://keys.example/", "https://user@keys.example/", "keys.example", "https://"] {
            #expect(throws: GatewayError.self) { try directory.setKeySource(url: bad, of: "shop") }
        }
        try directory.setKeySource(url: "https://keys.example/jwks.json", of: "shop")
        try directory.setEnforcement(.required, for: "shop")
        let signer = try SharedKeys.stranger()
        let set = JWKSet(keys: [signer.publicKey]).json
        let registry = AppRegistry(
            directory: directory, now: { Date(timeIntervalSince1970: 1_000) },
            fetch: { _ in Array(set.utf8) }, run: { $0() })
        try registry.refresh()
        let token = try signer.sign(claims: ["sub": "user-1", "exp": 2_000])
        func verdict() throws -> Verdict {
            try #require(registry.app(writeKey: writeKey)).admit(
                AdmissionRequest(credential: Credential(.userToken, token), userIDs: ["user-1"]), at: 1_000)
        }
        guard case .rejected(let report) = try verdict() else {
            return #expect(Bool(false), "accepted too early")
        }
        #expect(report.code == .noMatchingPublicKeys)
        registry.refreshPublished()
        guard case .accepted = try verdict() else { return #expect(Bool(false), "still rejected") }
    }

    /// The publisher may have added the key after the last fetch.
    @Test(arguments: [Credential.Scheme.userToken, .accessToken])
    func aTokenWithAnUnknownKeyIDTriggersAFetchOfTheKeySet(scheme: Credential.Scheme) throws {
        let place = try TestStorage()
        let storage = try place.open()
        let directory = try storage.openControl(as: .account)
        let writeKey = try directory.createApp(id: "shop").writeKey
        try directory.setKeySource(url: "https://keys.example/jwks.json", of: "shop")
        try directory.setEnforcement(.required, for: "shop")
        let clock = ManualClock(now: Date(timeIntervalSince1970: 1_000))
        let asked = Lock(0)
        let set = try newSet()
        let registry = AppRegistry(
            directory: directory, now: { clock.now },
            fetch: { _ in
                asked.withLock { $0 += 1 }
                return Array(set.utf8)
            }, run: { $0() })
        try registry.refresh()
        registry.refreshPublished()
        try registry.refresh()
        clock.advance(by: 60)
        registry.refreshPublished()
        #expect(asked.withLock { $0 } == 1)

        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let limits = GatewayLimits()
        let path = RequestPath(
            apps: registry, store: store, parsers: ParserPool(limits: limits), limits: limits,
            appLimiter: RateLimiter(rate: limits.requestsPerSecondPerApp), now: { clock.now })
        let token = try SharedKeys.stranger().sign(claims: ["sub": "user-1", "exp": 2_000])
        let admission = AdmissionRequest(
            credential: Credential(scheme, token), userIDs: scheme == .userToken ? ["user-1"] : [])
        let admitted = path.admitted(
            admission, app: try #require(registry.app(writeKey: writeKey)),
            request: HTTPRequest(method: "POST", path: "/", receivedMilliseconds: 0))
        guard case .rejected(let error) = admitted else {
            return #expect(Bool(false), "a stranger was admitted")
        }
        #expect(error.report.code == .noMatchingPublicKeys)
        registry.refreshPublished()
        #expect(asked.withLock { $0 } == 2)
    }
}
