import CountersignCore
import CountersignDelivery
import CountersignTesting
import CountersignTransport
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import CountersignLocations

@Suite(.closing, .timeLimit(.minutes(5)))
struct AccessTokensTests {
    private let bench = AccessTokenBench()

    /// Reports to the source that a server has accepted the token, as `DeliveryEngine` does.
    private func accept(_ generation: Int, by source: any CredentialSource) async {
        await source.accepted(Credential(.bearer, token: nil, generation: generation), of: .anonymous)
    }

    /// For `seconds`, reports the token of generation 1 as rejected after each wait. Returns the waits.
    @discardableResult
    private func retry(_ tokens: AccessTokens, for seconds: TimeInterval) async throws -> [TimeInterval] {
        let end = bench.clock.uptime + seconds
        var waits: [TimeInterval] = []
        while bench.clock.uptime < end {
            let retryAt = try #require(await tokens.authorize(rejected: 1).retryAt)
            #expect(await tokens.state.kind == .waiting)
            waits.append(retryAt - bench.clock.uptime)
            bench.clock.advance(to: retryAt)
        }
        return waits
    }

    // MARK: One refresh

    @Test func aHundredConcurrentRejectionsCauseOneRefresh() async throws {
        let tokens = bench.make()
        for round in 1...20 {
            let first = await tokens.authorize(rejected: nil)
            let generation = try #require(first.generation)
            let verdicts = await withTaskGroup(of: CredentialDecision.self) { group in
                for _ in 0..<100 { group.addTask { await tokens.authorize(rejected: generation) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(verdicts.count == 100)
            #expect(Set(verdicts.map(\.token)) == ["A\(round)"])
            #expect(bench.refreshes == round)
            await accept(verdicts[0].generation ?? 0, by: tokens)
            bench.clock.advance(by: 40)
        }
        #expect(bench.transport.overlaps == 0)
        #expect(bench.events.withLock { $0.count } == 20)
    }

    @Test func aTokenHandedToAClientThatClosesAtOnceKeepsItsExpiry() async {
        await bench.make(bench.expiring(in: 600)).close()
        bench.clock.advance(by: 600)
        let tokens = bench.make(bench.expiring(in: 600))
        #expect(await tokens.authorize(rejected: nil).token == "A1")
    }

    @Test func aRejectionOfAnOlderTokenCausesNoRefresh() async {
        let tokens = bench.make()
        #expect(await tokens.authorize(rejected: 1).token == "A1")
        #expect(await tokens.authorize(rejected: 1).token == "A1")
        #expect(bench.refreshes == 1)
    }

    @Test func callerThatIsCancelledDoesNotCancelTheRefresh() async {
        let gate = bench.holdAnswers()
        let tokens = bench.make()
        let caller = Task { await tokens.authorize(rejected: 1) }
        await bench.transport.waitForRequests(1)
        caller.cancel()
        #expect(await caller.value.problem == "cancelled")
        gate.signal()
        #expect(await tokens.authorize(rejected: 1).token == "A1")
        #expect(bench.refreshes == 1)
    }

    @Test func twoProcessesWithOneStoreRefreshOnce() async {
        let gate = bench.holdAnswers()
        let first = bench.make()
        let second = bench.make()
        await first.prepare()
        await second.prepare()
        async let one = first.authorize(rejected: 1)
        await bench.transport.waitForRequests(1)
        async let two = second.authorize(rejected: 1)
        // The second client finds the lock taken and sleeps before it tries again.
        await bench.clock.waitForSleeper()
        gate.signal()
        #expect(await one.token == "A1")
        await bench.hasReported.wait()
        bench.clock.advance(by: 0.1)
        #expect(await two.token == "A1")
        #expect(bench.refreshes == 1)
    }

    // MARK: Expiry

    @Test func aTokensLifetimeStartsWhenTheAppSetsItNotWhenItIsStored() async {
        var configuration = bench.configuration
        configuration.expires = 600
        let store = bench.unreadableStore
        let tokens = bench.make(configuration, store: store)
        bench.clock.advance(by: 500)
        #expect(await tokens.authorize(rejected: nil).problem == "store_unreadable")
        store.setHooks()
        #expect(await tokens.authorize(rejected: nil).token == "A0")
        bench.clock.advance(by: 63)
        #expect(await tokens.authorize(rejected: nil).token == "A0")
        bench.clock.advance(by: 1)
        #expect(await tokens.authorize(rejected: nil).token == "A1")
    }

    @Test func aUsedTokenIsRefreshedAtItsExpiryWithoutARequest() async {
        let tokens = bench.make(bench.expiring(in: 600))
        await tokens.prepare()
        await bench.clock.waitForSleeper()
        bench.clock.advance(by: 600)
        await bench.transport.waitForRequests(1)
        #expect(await tokens.authorize(rejected: nil).token == "A1")
        await bench.clock.waitForSleeper()
        bench.clock.advance(by: 4_000)
        await bench.transport.waitForRequests(2)
        for await _ in bench.changes.prefix(3) {}
        #expect(await tokens.generation(of: "A2") == 3)
    }

    @Test(arguments: [
        (3_900.0, 3_900.0), (1_750_000_000 + 500, 500), (1_750_000_500_000, 500), (-1, .infinity),
        (0, .infinity), (1_700_000_000, 0),
    ])
    func everyFormOfExpiresIsRead(expires: Double, lifetime: TimeInterval) async {
        bench.fraction.withLock { $0 = 0 }
        let tokens = bench.make(bench.expiring(in: expires))
        await tokens.prepare()
        if lifetime > 0 {
            bench.clock.advance(by: min(lifetime, 1e6) - min(60, lifetime * 0.04) - 1)
            #expect(await tokens.authorize(rejected: nil).token == "A0")
        }
        bench.clock.advance(by: 2)
        let token = await tokens.authorize(rejected: nil).token
        #expect(token == (lifetime == .infinity ? "A0" : "A1"))
    }

    @Test(arguments: [-86_400.0, 86_400.0])
    func aWrongDeviceClockCausesNeitherLoopsNorDelays(error: TimeInterval) async {
        // The server's clock is right. The device's clock is wrong by `error`.
        let truth = bench.clock.now
        bench.clock.setNow(truth + error)
        bench.server.state.withLock { $0.lifetime = nil }
        let clock = bench.clock
        bench.server.override { _ in
            let now = clock.now - error
            return .json(
                200,
                #"{"access_token":"B\#(Int(clock.uptime))","refresh_token":"R","expires_at":\#(Int(now.timeIntervalSince1970) + 3600)}"#,
                headers: [("Date", TokenServer.httpDate(now))])
        }
        let tokens = bench.make()
        #expect(await tokens.authorize(rejected: 1).token == "B1000")
        for _ in 0..<100 { #expect(await tokens.authorize(rejected: nil).token == "B1000") }
        #expect(bench.refreshes == 1)
        bench.clock.advance(by: 3_550)
        #expect(await tokens.authorize(rejected: nil).token == "B4550")
        // The user changes the clock. The deadline does not depend on it.
        bench.clock.setNow(truth + 40 * 86_400)
        for _ in 0..<10 { _ = await tokens.authorize(rejected: nil) }
        #expect(bench.refreshes == 2)
        await tokens.close()

        // After a restart with a clock set back, the token's lifetime is not extended.
        bench.clock.setNow(truth - 400 * 86_400)
        let next = bench.make()
        #expect(await next.authorize(rejected: nil).token == "B4550")
        bench.clock.advance(by: 3_600)
        #expect(await next.authorize(rejected: nil).token == "B8150")
    }

    // MARK: Token pairs

    @Test func aNewAccessTokenFromTheAppKeepsTheRefreshToken() async {
        let tokens = bench.make()
        #expect(await tokens.authorize(rejected: 1).token == "A1")
        let update = bench.login("A1b", nil)
        await tokens.configure(update)
        #expect(await tokens.authorize(rejected: nil).token == "A1b")
        let generation = await tokens.generation(of: "A1b")
        #expect(await tokens.authorize(rejected: generation).token == "A2")
        #expect(bench.sent == ["R0", "R1"])
    }

    @Test func newPairDuringARefreshWins() async {
        let gate = bench.holdAnswers()
        let tokens = bench.make()
        async let rejected = tokens.authorize(rejected: 1)
        await bench.transport.waitForRequests(1)
        let login = bench.login("NEW", "RNEW")
        await tokens.configure(login)
        #expect(await tokens.authorize(rejected: nil).token == "NEW")
        gate.signal()
        #expect(await rejected.token == "NEW")
        #expect(bench.events.withLock { $0.map(\.status) } == [200])
        await tokens.close()
        #expect(await bench.make(login).authorize(rejected: nil).token == "NEW")
    }

    @Test func loginInAnotherProcessDuringARefreshWins() async {
        let gate = bench.holdAnswers()
        let refreshing = bench.make()
        let other = bench.make()
        await other.prepare()
        async let rejected = refreshing.authorize(rejected: 1)
        await bench.transport.waitForRequests(1)
        let login = bench.login("NEW", "RNEW")
        await other.configure(login)
        gate.signal()
        #expect(await rejected.token == "NEW")
        await refreshing.close()
        await other.close()
        #expect(await bench.make(login).authorize(rejected: nil).token == "NEW")
    }

    // MARK: Logging out

    private var stored: TokenPair? {
        get throws {
            try bench.store.token(for: "access-token").map {
                try JSONDecoder().decode(TokenPair.self, from: Data($0.utf8))
            }
        }
    }

    @Test func tokensRemovedWhileARefreshedPairIsStoredStayRemoved() async throws {
        let (isReading, goOn) = (Handshake(), Handshake())
        let store = HookedTokenStore(bench.store)
        let tokens = bench.make(store: store)
        #expect(await tokens.authorize(rejected: nil).token == "A0")
        // The next read of the store is the last before the new pair is stored.
        bench.transport.setHandler { [server = bench.server] request in
            store.setHooks {
                $0.didRead = {
                    isReading.signal()
                    goOn.block()
                }
            }
            return server.answer(request)
        }
        async let rejected = tokens.authorize(rejected: 1)
        await isReading.wait()
        let removal = await tokens.beginRemoving()
        // When this call returns, the actor has run `removal` up to its first suspension.
        _ = await tokens.state
        goOn.signal()
        await removal.value
        #expect(await rejected.token == nil)
        #expect(try stored == nil)
        #expect(await tokens.state.kind == .noCredential)
    }

    @Test func tokensRemovedWhileTheAppsPairIsStoredStayRemoved() async throws {
        let tokens = bench.make()
        await tokens.prepare()
        await tokens.close()
        let (isSaving, goOn) = (Handshake(), Handshake())
        let store = bench.slowStore(isSaving, goOn)
        let again = bench.make(bench.login(nil, nil), store: store)
        await again.prepare()
        let handover = Task { await again.configure(bench.login("NEW", "RNEW")) }
        await isSaving.wait()
        let removal = await again.beginRemoving()
        _ = await again.state
        goOn.signal()
        await handover.value
        await removal.value
        #expect(await again.state.kind == .noCredential)
        #expect(try stored == nil)
    }

    @Test func aLogOutInAnotherProcessDuringARefreshWins() async throws {
        let gate = bench.holdAnswers()
        let refreshing = bench.make()
        let other = bench.make()
        await other.prepare()
        async let rejected = refreshing.authorize(rejected: 1)
        await bench.transport.waitForRequests(1)
        await other.removeAll()
        gate.signal()
        #expect(await rejected.token == nil)
        #expect(try stored == nil)
        #expect(await refreshing.state.kind == .noCredential)
    }

    @Test func aLogOutInAnotherProcessIsNoticedBeforeTheNextRefresh() async throws {
        let tokens = bench.make()
        let other = bench.make()
        for tokens in [tokens, other] { await tokens.prepare() }
        await other.removeAll()
        #expect(await tokens.authorize(rejected: 1).token == nil)
        #expect(bench.refreshes == 0)
        #expect(try stored == nil)
    }

    @Test func aPairRemovedByAnotherProcessIsNotUsedAgain() async throws {
        let tokens = bench.make()
        let other = bench.make()
        for tokens in [tokens, other] { #expect(await tokens.authorize(rejected: nil).token == "A0") }
        await other.removeAll()
        #expect(await tokens.authorize(rejected: nil).token == nil)
        #expect(await tokens.state.kind == .noCredential)
        await other.configure(bench.login("B0", "RB0"))
        await tokens.configure(bench.login("C0", "RC0"))
        #expect(await other.authorize(rejected: nil).token == "B0", "a new pair is not a log-out")
    }

    @Test func anUnstoredPairIsNotStoredAfterALogOutInAnotherProcess() async throws {
        let store = bench.fullStore(afterSaves: 0)
        let tokens = bench.make(store: store)
        #expect(await tokens.authorize(rejected: nil).token == "A0")
        let other = bench.make(bench.login(nil, nil))
        await other.prepare()
        await other.removeAll()
        store.setHooks()
        #expect(await tokens.authorize(rejected: 1).token == nil)
        #expect(try stored == nil)
    }

    @Test func tokensThatCannotBeDeletedAreIgnoredAtTheNextStart() async throws {
        let store = HookedTokenStore(bench.store) {
            $0.willRemove = { throw CocoaError(.fileWriteNoPermission) }
        }
        let tokens = bench.make(store: store)
        #expect(await tokens.authorize(rejected: nil).token == "A0")
        await tokens.removeAll()
        await tokens.close()
        #expect(try stored != nil)
        let next = bench.make(bench.login(nil, nil), isSparse: true)
        #expect(await next.authorize(rejected: nil).token == nil)
    }

    @Test func closingDoesNotWaitForAnotherProcessThatRefreshes() async throws {
        let tokens = bench.make()
        await tokens.prepare()
        let holder = TokenPairStore(
            store: bench.store, lockFile: bench.directory.appendingPathComponent("lock"))
        try await holder.lock(clock: bench.clock)
        async let rejected = tokens.authorize(rejected: 1)
        await bench.clock.waitForSleeper()
        await tokens.close()
        #expect(await rejected.problem == "store_locked")
        await holder.unlock()
    }

    @Test func anUnstoredRefreshedPairIsDroppedAfterALogOutInAnotherProcess() async throws {
        let store = bench.fullStore(afterSaves: 1)
        let tokens = bench.make(store: store)
        let other = bench.make()
        let verdict = await tokens.authorize(rejected: 1)
        #expect(verdict.problem == "not_stored")
        await other.prepare()
        await other.removeAll()
        store.setHooks()
        bench.clock.advance(to: verdict.retryAt ?? 0)
        #expect(await tokens.authorize(rejected: 1).token == nil)
        #expect(try stored == nil)
    }

    @Test func failedDeletionOfTokensIsRetried() async throws {
        await bench.make().close()
        let store = bench.unreadableStore
        let tokens = bench.make(bench.login(nil, nil), store: store, isSparse: true)
        await tokens.removeAll()
        store.setHooks()
        await tokens.configure(bench.login(nil, nil))
        #expect(await tokens.authorize(rejected: nil).token == nil)
        #expect(try stored == nil)
    }

    /// The stored pair may belong to a former user.
    @Test(arguments: [false, true])
    func aChangeWithoutTokensDoesNotUseTheStoredPair(isReadable: Bool) async {
        await bench.make().close()
        let store = bench.unreadableStore
        if isReadable { store.setHooks() }
        let tokens = bench.make(bench.login(nil, nil), store: store)
        await tokens.prepare()
        await tokens.configure(bench.login(nil, nil))
        store.setHooks()
        #expect(await tokens.authorize(rejected: nil).token == nil)
        // Nor is the former refresh token used with another access token.
        await tokens.configure(bench.login("B0", nil))
        #expect(await tokens.authorize(rejected: nil).token == "B0")
        #expect(await tokens.authorize(rejected: tokens.generation(of: "B0")).token == nil)
        #expect(bench.refreshes == 0)
    }

    // MARK: Crashes

    @Test func newPairIsNotUsedBeforeItIsOnDisk() async {
        let store = bench.fullStore(afterSaves: 1)
        let tokens = bench.make(store: store)
        let verdict = await tokens.authorize(rejected: 1)
        #expect(verdict.problem == "not_stored")
        #expect(bench.events.withLock { $0.map(\.isSuccess) } == [false])
        // The disk works again: the pair from the server is stored without another refresh.
        store.setHooks()
        bench.clock.advance(to: verdict.retryAt ?? 0)
        #expect(await tokens.authorize(rejected: 1).token == "A1")
        #expect(bench.refreshes == 1)
        #expect(await bench.make().authorize(rejected: nil).token == "A1")
    }

    // The gateway repeats a lost response for at most a minute. After any outage, the request's timeout and the
    // wait for the next attempt take less than that minute.
    @Test func aRefreshWithoutAResponseIsRetriedWithinAMinute() async throws {
        let failure = Lock(HTTPTransportError(.cannotConnect, "offline"))
        bench.transport.setHandler { _ in throw failure.withLock { $0 } }
        let tokens = bench.make()
        for _ in 0..<12 {
            let verdict = await tokens.authorize(rejected: 1)
            bench.clock.advance(by: try #require(verdict.retryAt) - bench.clock.uptime)
        }
        for code in [HTTPTransportError.Code.timedOut, .connectionLost] {
            failure.withLock { $0 = HTTPTransportError(code, "") }
            let retryAt = try #require(await tokens.authorize(rejected: 1).retryAt)
            let longest = try #require(bench.transport.requests.last).timeout
            #expect(longest + retryAt - bench.clock.uptime < 60)
            bench.clock.advance(by: retryAt - bench.clock.uptime)
        }
    }

    @Test func requestDuringTheStartWaitsForTheToken() async {
        let (isSaving, goOn) = (Handshake(), Handshake())
        let store = bench.slowStore(isSaving, goOn)
        let tokens = bench.make(store: store)
        let start = Task { await tokens.prepare() }
        await isSaving.wait()
        let verdict = await tokens.beginAuthorizing()
        // When this call returns, the actor has run `verdict` up to its first suspension.
        _ = await tokens.state
        goOn.signal()
        #expect(await verdict.value.token == "A0")
        await start.value
    }

    @Test func aClockThatIsSetWhileATokenIsStoredDoesNotExpireTheToken() async {
        let (isSaving, goOn) = (Handshake(), Handshake())
        let store = bench.slowStore(isSaving, goOn)
        let tokens = bench.make(bench.expiring(in: 600), store: store)
        let start = Task { await tokens.prepare() }
        await isSaving.wait()
        bench.clock.setNow(bench.clock.now + 86_400)
        goOn.signal()
        await start.value
        #expect(await tokens.authorize(rejected: nil).token == "A0")
        #expect(bench.refreshes == 0)
    }

    @Test func anUnreadableStoreIsNotTreatedAsEmpty() async {
        let first = bench.make()
        #expect(await first.authorize(rejected: 1).token == "A1")
        await first.close()
        let store = bench.unreadableStore
        let second = bench.make(store: store)
        #expect(await second.authorize(rejected: nil).problem == "store_unreadable")
        store.setHooks()
        #expect(await second.authorize(rejected: nil).token == "A1")
    }

    // MARK: Responses

    @Test(arguments: [
        (400, #"{"error":"invalid_grant"}"#), (401, #"{"error":"invalid_client"}"#),
        (200, #"{"error":"bad_refresh_token","error_description":"Expired."}"#),
        (200, #"{"ok":false,"error":"invalid_refresh_token"}"#), (503, #"{"error":"invalid_grant"}"#),
        (302, #"{"error":"invalid_grant"}"#), (429, #"{"error":"invalid_grant"}"#),
        (400, #"{"code":400,"error_code":"refresh_token_already_used","msg":"Already Used"}"#),
        (400, #"{"error":{"code":400,"message":"TOKEN_EXPIRED","status":"INVALID_ARGUMENT"}}"#),
    ])
    func anInvalidRefreshTokenStopsRefreshesUntilANewOneIsSet(status: Int, body: String) async {
        bench.server.override { _ in .json(status, body) }
        let tokens = bench.make()
        for _ in 0..<100 {
            let verdict = await tokens.authorize(rejected: 1)
            #expect(verdict.problem != nil)
            #expect(verdict.retryAt == nil)
            bench.clock.advance(by: 3_600)
        }
        #expect(bench.refreshes == 1)
        #expect(bench.events.withLock { $0.map(\.status) } == [status])
        #expect(await tokens.state.kind == .reauthenticationRequired)
        await tokens.close()

        // The same after a restart with the pair whose refresh token is invalid.
        let second = bench.make()
        // The access token may outlive the refresh token, so it is used until a server rejects it.
        #expect(await second.authorize(rejected: nil).token == "A0")
        #expect(await second.authorize(rejected: 1).problem != nil)
        #expect(await second.state.kind == .reauthenticationRequired)
        await second.configure(bench.login("B0", nil))
        #expect(await second.authorize(rejected: 2).problem != nil)
        #expect(bench.refreshes == 1)
        let login = bench.login("NEW", "RNEW")
        await second.configure(login)
        #expect(await second.authorize(rejected: nil).token == "NEW")
        #expect(await second.state.kind == .ready)
    }

    @Test(arguments: [
        ("a b", false), ("a,b", false), ("a\"b", false), ("a=b", false), ("=", false),
        ("1|aB3", true), ("aZ09-._~+/==", true),
    ])
    func onlyAB64tokenIsSentAsABearerToken(token: String, isValid: Bool) {
        #expect((SignedToken.accessToken(token, strategy: .jwt) != nil) == isValid)
        #expect(SignedToken.accessToken("SharedAccessSignature sr=\(token)", strategy: .sas) != nil)
    }

    /// A firewall may send these responses for a while, without having checked the token.
    @Test(arguments: [
        (401, ""), (403, ""), (401, #"{"message":"Unauthenticated."}"#), (403, #"{"error":"Forbidden"}"#),
    ])
    func rejectionsWithoutACodeAreFinalAfterAnHour(status: Int, body: String) async throws {
        bench.server.override { _ in .json(status, body) }
        let tokens = bench.make()
        try await retry(tokens, for: 3_600)
        let before = bench.refreshes
        #expect(before > 3)
        #expect(await tokens.authorize(rejected: 1).retryAt == nil)
        #expect(await tokens.state.kind == .reauthenticationRequired)
        bench.clock.advance(by: 86_400)
        #expect(await tokens.authorize(rejected: 1).problem != nil)
        #expect(bench.refreshes == before + 1)
    }

    @Test func rejectionsWithoutACodeAreNotFinalIfTokensAreGrantedBetween() async throws {
        let tokens = bench.make()
        for round in 1...3 {
            bench.server.override { _ in .json(403, "") }
            #expect(await tokens.authorize(rejected: round).problem == "http_403")
            // The server recovers before the clock moves, because the token's timer may refresh the token then.
            bench.server.override(nil)
            bench.clock.advance(by: 1_800)
            #expect(await tokens.authorize(rejected: round).token == "A\(round)")
            bench.clock.advance(by: 1_800)
        }
        #expect(await tokens.state.kind == .ready)
    }

    /// Login pages of captive portals.
    @Test(arguments: [
        TransportResponse.json(200, "<html>Log in</html>"), .json(403, "<!DOCTYPE html>"),
        .json(401, "<html>"),
        .json(404, "<html>"), .json(302, "", headers: [("Location", "https://login.example/")]),
        .json(511, ""),
        .json(200, "", headers: [("Content-Type", "text/html")]), .json(200, ""),
    ])
    func aRefreshSucceedsOnceTheCaptivePortalIsGone(answer: TransportResponse) async throws {
        bench.server.override { _ in answer }
        let tokens = bench.make()
        let start = bench.clock.uptime
        try await retry(tokens, for: 20)
        #expect(bench.clock.uptime <= start + 62)
        bench.server.override(nil)
        #expect(await tokens.authorize(rejected: 1).token == "A1")
    }

    /// Servers send these errors with any status.
    @Test(arguments: [
        (200, #"{"error":"temporarily_unavailable"}"#), (400, #"{"error":"server_error"}"#),
        (403, #"{"error":"Temporarily_Unavailable"}"#), (200, #"{"ok":false,"error":"ratelimited"}"#),
        (400, #"{"error":{"code":429,"message":"QUOTA","status":"RESOURCE_EXHAUSTED"}}"#),
    ])
    func aBusyServerIsRetriedWithinFiveMinutes(status: Int, body: String) async throws {
        bench.server.override { _ in .json(status, body) }
        let tokens = bench.make()
        let waits = try await retry(tokens, for: 7_200)
        #expect(waits.allSatisfy { $0 <= 300 })
        bench.server.override(nil)
        #expect(await tokens.authorize(rejected: 1).token == "A1")
    }

    /// The missing part may hold the refresh token.
    @Test func aTruncatedTokenResponseIsIgnoredAndRequestedAgain() async throws {
        bench.server.override { _ in
            TransportResponse(
                status: 200, body: Array(#"{"access_token":"A1","expires_in":60,"x":"#.utf8),
                isTruncated: true)
        }
        let tokens = bench.make()
        let verdict = await tokens.authorize(rejected: 1)
        #expect(verdict.problem == "not_json")
        bench.clock.advance(to: try #require(verdict.retryAt))
        bench.server.override(nil)
        #expect(await tokens.authorize(rejected: 1).token == "A1")
    }

    @Test(arguments: [408, 421, 425, 429, 500, 502, 503, 599])
    func transientFailuresBackOff(status: Int) async throws {
        bench.server.override { _ in .json(status, "busy") }
        let tokens = bench.make()
        let waits = try await retry(tokens, for: 1_110)
        #expect(waits == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
        #expect(bench.refreshes == 10)
        #expect(bench.events.withLock { $0.map(\.isSuccess) } == Array(repeating: false, count: 10))
        bench.server.override(nil)
        #expect(await tokens.authorize(rejected: 1).token == "A1")
        #expect(await tokens.state.kind == .ready)
    }

    /// For each response without a token, the old pair stays and one event is reported, without a loop.
    @Test(arguments: [
        "{}", #"{"access_token":""}"#, #"{"access_token":null}"#, #"{"access_token":["A"]}"#,
        #"{"token_type":"Bearer","scope":"x"}"#, #"{"access_token":"a b\u0000c"}"#,
        #"{"refresh_token":"R9"}"#,
        #"{"error":"server_is_tired"}"#,
    ])
    func responsesWithoutATokenKeepTheOldPair(body: String) async {
        bench.server.override { _ in .json(200, body) }
        let tokens = bench.make()
        for _ in 0..<3 {
            _ = await tokens.authorize(rejected: 1)
            bench.clock.advance(by: 300)
        }
        #expect(bench.refreshes == 3)
        #expect(bench.events.withLock { $0.map(\.isSuccess) } == [false, false, false])
        #expect(await tokens.state.kind == .suspended)
        #expect(await tokens.authorize(rejected: nil).token == "A0")
        #expect(await tokens.authorize(rejected: 1).problem != nil)
        bench.server.override(nil)
        bench.clock.advance(by: 3_600)
        #expect(await tokens.authorize(rejected: 1).token == "A1")
        #expect(bench.sent == ["R0", "R0", "R0", "R0"])
    }

    @Test func refreshesContinueForTwoMinutesDespiteResponsesWithoutAToken() async throws {
        bench.server.override { _ in .json(200, #"{"ok":false}"#) }
        let tokens = bench.make()
        try await retry(tokens, for: 126)
    }

    /// A response that is not a JSON object comes from a proxy or portal.
    @Test(arguments: ["", "[]", #"["access_token","A"]"#, "null", "17", #"{"access_token":"A""#, "OK"])
    func responsesThatAreNotObjectsKeepThePairAndAreRetried(body: String) async throws {
        bench.server.override { _ in .json(200, body) }
        let tokens = bench.make()
        for _ in 0..<10 {
            _ = await tokens.authorize(rejected: 1)
            bench.clock.advance(by: 300)
        }
        #expect(bench.refreshes == 10)
        #expect(await tokens.state.kind == .waiting)
        bench.server.override(nil)
        #expect(await tokens.authorize(rejected: 1).token == "A1")
    }

    @Test(arguments: [301, 302, 307, 308])
    func redirectsAreNotFollowed(status: Int) async {
        bench.server.override { _ in .json(status, "", headers: [("Location", "https://evil.example/")]) }
        let tokens = bench.make()
        #expect(await tokens.authorize(rejected: 1).problem == "redirected")
        #expect(bench.transport.requests.allSatisfy { $0.url.host == "auth.example" })
    }

    // MARK: No loops

    @Test func unneededRefreshesAreRateLimited() async {
        let tokens = bench.make()
        var generation = 1
        for _ in 0..<50 {
            let verdict = await tokens.authorize(rejected: generation)
            generation = verdict.generation ?? generation
            // Each token is accepted once.
            await accept(generation, by: tokens)
            bench.clock.advance(by: 0.1)
        }
        #expect(bench.refreshes == 5)
        #expect(await tokens.state.kind == .suspended)
        let login = bench.login("NEW", "R5")
        await tokens.configure(login)
        #expect(await tokens.state.kind == .ready)
    }

    @Test func tokensThatLiveTwoSecondsCauseNoRefreshLoop() async {
        bench.server.state.withLock { $0.lifetime = 2 }
        let tokens = bench.make()
        var generation = await tokens.authorize(rejected: 1).generation ?? 0
        let end = bench.clock.uptime + 60
        while bench.clock.uptime < end, !Task.isCancelled {
            let verdict = await tokens.authorize(rejected: nil)
            generation = verdict.generation ?? -1
            await accept(generation, by: tokens)
            bench.clock.advance(by: 0.05)
        }
        #expect(await tokens.state.kind == .ready)
        #expect((29...31).contains(bench.refreshes), "\(bench.refreshes)")
    }

    /// At most 60 refreshes in a minute, for random responses of the token server and random rejections of the tokens.
    @Test(arguments: 0..<60)
    func noSequenceOfResponsesCausesARefreshLoop(seed: Int) async {
        var random = SeededGenerator(seed: UInt64(seed))
        let bench = AccessTokenBench()
        let answers = Lock((0..<400).map { _ in Int(random.next() % 12) })
        let serial = Lock(0)
        bench.server.override { _ in
            let kind = answers.withLock { $0.isEmpty ? 0 : $0.removeFirst() }
            let next = serial.withLock { serial in
                serial += 1
                return serial
            }
            switch kind % (seed % 12 + 1) {
            case 0: return .json(200, #"{"access_token":"T\#(next)","refresh_token":"S\#(next)"}"#)
            case 1: return .json(200, #"{"access_token":"T\#(next)","expires_in":0.001}"#)
            case 2: return .json(200, #"{"access_token":"same"}"#)
            case 3: return .json(200, #"{"access_token":"T\#(next)","expires_in":1}"#)
            case 4: return .json(503, "", headers: [("Retry-After", "0")])
            case 5: return .json(200, "<html>")
            case 6: return .json(302, "")
            case 7: return .json(400, "{}")
            case 8: return .json(200, #"{"access_token":"T\#(next)","expires_at":1}"#)
            case 9: return .json(429, "", headers: [("Retry-After", "-5")])
            case 10:
                return .json(
                    200, #"{"access_token":"T\#(next)","expires_at":"Fri, 20 Feb 1970 18:10:06 GMT"}"#)
            default: return .json(200, #"{"access_token":"T\#(next)","expires_in":1e-9,"refresh_token":""}"#)
            }
        }
        let tokens = bench.make()
        var rejected: Int?
        for _ in 0..<1_200 {
            let verdict = await tokens.authorize(rejected: rejected)
            if let generation = verdict.generation {
                rejected = random.next() % 3 == 0 ? nil : generation
                if rejected == nil {
                    await accept(generation, by: tokens)
                }
            }
            bench.clock.advance(by: 0.05)
        }
        #expect(bench.refreshes <= 60, "\(bench.refreshes) in a minute")
    }

    // MARK: Secrets

    @Test func noLogLineContainsAToken() async throws {
        let secrets = ["secret-access", "secret-refresh", "fresh-access", "fresh-refresh"]
        var configuration = bench.configuration
        configuration.accessToken = secrets[0]
        configuration.refreshToken = secrets[1]
        let answers = Lock([
            TransportResponse.json(500, #"{"error":"secret-refresh"}"#), .json(200, "secret-refresh"),
            .json(200, #"{"access_token":"fresh-access","refresh_token":"fresh-refresh"}"#),
            .json(400, #"{"error":"invalid_grant","error_description":"fresh-refresh"}"#),
        ])
        bench.server.override { _ in answers.withLock { $0.removeFirst() } }
        let tokens = bench.make(configuration)
        var generation: Int? = 1
        for _ in 0..<4 {
            generation = await tokens.authorize(rejected: generation).generation ?? generation
            bench.clock.advance(by: 60)
        }
        #expect(answers.withLock { $0.isEmpty })
        var text = bench.lines.withLock { $0.joined(separator: "\n") }
        for event in bench.events.withLock({ $0 }) {
            text += "\(event) \(String(reflecting: event)) \(event.error ?? "")"
            dump(event, to: &text)
        }
        let stored = try #require(try bench.store.token(for: "access-token"))
        let credential = try JSONDecoder().decode(TokenPair.self, from: Data(stored.utf8))
        text += "\(credential) \(String(reflecting: credential)) \(configuration)"
        dump(credential, to: &text)
        dump(configuration, to: &text)
        text += "\(await tokens.state)"
        for secret in secrets { #expect(text.contains(secret) == false, "\(secret) in \(text)") }
        #expect(text.contains("invalid_grant"))
    }
}

extension AccessTokenBench {
    /// A store whose disk is full after some saves, until other hooks are set.
    fileprivate func fullStore(afterSaves count: Int) -> HookedTokenStore {
        let left = Lock(count)
        return HookedTokenStore(store) {
            $0.willStore = { _ in
                let isPossible = left.withLock { left in
                    left -= 1
                    return left >= 0
                }
                guard isPossible else { throw CocoaError(.fileWriteOutOfSpace) }
            }
        }
    }

    /// A store whose reads and removals fail, until other hooks are set.
    fileprivate var unreadableStore: HookedTokenStore {
        HookedTokenStore(store) {
            $0.didRead = { throw CocoaError(.fileReadNoPermission) }
            $0.willRemove = { throw CocoaError(.fileWriteNoPermission) }
        }
    }

    /// A store that signals each save and then waits.
    fileprivate func slowStore(_ isSaving: Handshake, _ goOn: Handshake) -> HookedTokenStore {
        HookedTokenStore(store) {
            $0.willStore = { _ in
                isSaving.signal()
                goOn.block()
            }
        }
    }
}

extension AccessTokens {
    /// Requests the token in a task that runs next on this actor.
    fileprivate func beginAuthorizing() -> Task<CredentialDecision, Never> {
        Task { await authorize(rejected: nil) }
    }

    /// Deletes the tokens in a task that runs next on this actor.
    fileprivate func beginRemoving() -> Task<Void, Never> {
        Task { await removeAll() }
    }
}
