import CountersignDelivery
import CountersignTransport
import Foundation
import Testing

@testable import CountersignLocations

/// The refresh machine and its parts, without stores or requests.
struct RefreshPartsTests {
    private let retry = RetryPolicy(baseDelay: 2, maximumDelay: 100)
    private let problem = ServerAnswer.Explanation("code", "words")

    private func reading(_ uptime: TimeInterval = 0, fraction: Double = 0) -> ClockReading {
        ClockReading(now: Date(timeIntervalSince1970: 1_750_000_000), uptime: uptime, fraction: fraction)
    }

    private func token(_ access: String, lifetime: TimeInterval?, isOnDisk: Bool? = true) -> TokenInUse {
        var token = TokenInUse()
        take(access, lifetime: lifetime, isOnDisk: isOnDisk, into: &token)
        return token
    }

    private func take(
        _ access: String, lifetime: TimeInterval?, isOnDisk: Bool? = nil, into token: inout TokenInUse
    ) {
        _ = token.take(
            TokenPair(accessToken: access), lifetime: lifetime, isOnDisk: isOnDisk, leeway: 60, share: 0.04,
            at: reading())
    }

    @Test func aTokenIsDueForRefreshShortlyBeforeItsExpiry() {
        let token = token("a", lifetime: 1_000)
        #expect(token.refreshAt == 960)
        #expect(!token.hasLived(at: 959))
        #expect(token.hasLived(at: 960))
        #expect(self.token("a", lifetime: nil).refreshAt == nil)
        // A leeway below one second counts as 0. A server that counts whole seconds may end the token a second early.
        #expect(self.token("a", lifetime: 10).refreshAt == 10)
        #expect(self.token("a", lifetime: 10).hasLived(at: 9))
    }

    @Test func onlyAnotherAccessTokenIsANewGeneration() {
        var token = token("a", lifetime: nil)
        #expect(token.generation == 1)
        for (access, expected) in [("a", 1), ("b", 2), ("b", 2)] {
            take(access, lifetime: nil, into: &token)
            #expect(token.generation == expected)
        }
        token.remove()
        #expect(token.generation == 3)
        #expect(token.credential == nil)
    }

    @Test func aTokenIsFreshUntilItIsAcceptedOrItsWindowEnds() {
        var token = token("a", lifetime: 1_000)
        #expect(!token.isFresh(at: 1, window: 30), "the token is the app's")
        token.isFromRefresh = true
        #expect(token.isFresh(at: 1, window: 30))
        #expect(!token.isFresh(at: 30, window: 30))
        token.wasAccepted = true
        #expect(!token.isFresh(at: 1, window: 30))
    }

    @Test func aLoadedPairIsNotUsedBeforeItIsActivated() {
        var token = TokenInUse()
        token.loaded(TokenPair(accessToken: "a"))
        #expect(token.credential == nil)
        #expect(token.known?.accessToken == "a")
        token.dropDormant()
        #expect(token.known == nil)
    }

    @Test func eachRejectedTokenCountsOnceAndASuccessResetsTheCount() {
        var rate = RefreshRate()
        let before = [1, 1].map { rate.rejected($0, maximum: 2) }
        #expect(before == [false, false])
        rate.accepted()
        let after = [2, 3, 3, 4].map { rate.rejected($0, maximum: 2) }
        #expect(after == [false, true, false, false], "the count restarts after it exceeds the maximum")
    }

    @Test func refreshesAreCountedWithinARateWindow() {
        var rate = RefreshRate()
        for uptime in [0.0, 1, 2] { rate.refreshed(at: uptime) }
        #expect(rate.count(at: 29, window: 30) == 3)
        #expect(rate.count(at: 31, window: 30) == 1)
    }

    @Test func aRejectedTokenIsSentAgainOnceAfterEachWait() {
        var resending = Resending()
        #expect(resending.take(at: 0, retry: retry) == 2)
        #expect(resending.take(at: 1, retry: retry) == 2)
        #expect(resending.take(at: 2, retry: retry) == nil)
        #expect(resending.take(at: 2, retry: retry) == 6)
        resending.accepted()
        #expect(resending.take(at: 6, retry: retry) == nil)
        #expect(resending.take(at: 6, retry: retry) == 8)
    }

    @Test func refreshFailuresWaitAtLeastASecondAndAreCounted() {
        var obstacle = RefreshObstacle()
        obstacle.wait(problem, retry: retry, serverDelay: nil, at: reading())
        #expect(obstacle.wait == RefreshObstacle.Wait(until: 1, problem: problem))
        obstacle.clear()
        #expect(obstacle.wait == nil)
        let isFinal = [0, 100, 101, 102].map { obstacle.rejections.add(at: $0, count: 3, span: 100) }
        #expect(isFinal == [false, false, true, true])
        obstacle.resetCounts()
        let isStillFinal = obstacle.rejections.add(at: 300, count: 3, span: 100)
        #expect(!isStillFinal)
    }

    @Test func acceptanceAndStorageAreRecordedForOneTokenOnly() {
        var token = token("a", lifetime: 1_000, isOnDisk: false)
        token.isFromRefresh = true
        token.wasAccepted = true
        take("b", lifetime: 1_000, into: &token)
        #expect(token.isFresh(at: 1, window: 30), "no server has accepted this token yet")
        #expect(!token.isOnDisk)
    }

    // MARK: The whole machine

    private let granted = RefreshAnswer(
        TransportResponse(
            status: 200,
            body: Array(#"{"access_token":"late","refresh_token":"later","expires_in":1000}"#.utf8)),
        configuration: AuthorizationConfiguration())

    private func machine(_ pair: TokenPair) -> RefreshMachine {
        var machine = RefreshMachine(configuration: AuthorizationConfiguration())
        machine.adopted(pair, isOnDisk: true, at: reading(fraction: 1))
        return machine
    }

    /// Sets other tokens, as an app does. They are not on disk yet, so the machine does not use them.
    private func handOver(_ machine: inout RefreshMachine) {
        var other = AuthorizationConfiguration()
        (other.accessToken, other.refreshToken) = ("x", "y")
        let next = machine.configure(other, isSparse: false, handedOverAt: 0, at: reading())
        #expect(next?.accessToken == "x")
    }

    @Test func newTokensFromTheAppEndARefreshAtEveryStep() {
        for steps in 1...3 {
            var machine = machine(TokenPair(accessToken: "a", refreshToken: "r"))
            let pair = machine.credential
            var action = machine.begin(uptime: 0)
            if steps > 1 { action = machine.locked(stored: pair, at: reading()) }
            if steps > 2 { action = machine.answered(granted, at: reading()) }
            #expect(action != .finish)
            handOver(&machine)
            action =
                switch steps {
                case 1: machine.locked(stored: pair, at: reading())
                case 2: machine.answered(granted, at: reading())
                default: machine.saved(nil, at: reading())
                }
            #expect(action == .finish, "\(steps)")
            #expect(machine.credential?.accessToken == "a", "\(steps)")
        }
    }

    @Test func onlyAUsedTokenIsRefreshedWithoutARequest() {
        var configuration = AuthorizationConfiguration()
        configuration.refreshUrl = "https://auth.example/tokens"
        configuration.refreshPayload = ["refresh_token": "{refreshToken}"]
        var machine = RefreshMachine(configuration: configuration)
        let pair = TokenPair(accessToken: "a", refreshToken: "r", expiresAt: 1_750_001_000, lifetime: 1_000)
        machine.adopted(pair, isOnDisk: true, at: reading())
        _ = machine.begin(uptime: 960)
        _ = machine.locked(stored: pair, at: reading(960))
        _ = machine.answered(granted, at: reading(960))
        _ = machine.saved(nil, at: reading(960))
        #expect(machine.timer == nil, "no request has used the new token")
        _ = machine.demand(rejected: nil, hasWaited: false, uptime: 960)
        #expect(machine.timer == 1_920)
    }

    @Test func aSuspensionRestartsTheCountOfUnusableResponses() {
        var machine = machine(TokenPair(accessToken: "a", refreshToken: "r"))
        let unusable = RefreshAnswer(
            TransportResponse(status: 200, body: Array("{}".utf8)),
            configuration: AuthorizationConfiguration())
        let kinds = [0.0, 300, 600, 700].map { uptime in
            _ = machine.begin(uptime: uptime)
            _ = machine.locked(stored: machine.credential, at: reading(uptime))
            _ = machine.answered(unusable, at: reading(uptime))
            return machine.authorizationState(uptime: uptime).kind
        }
        #expect(kinds == [.waiting, .waiting, .suspended, .waiting])
    }

    // MARK: Rejected tokens that cannot be refreshed

    private func retryAt(_ machine: inout RefreshMachine, _ uptime: TimeInterval) -> TimeInterval? {
        let demand = machine.demand(rejected: machine.generation, hasWaited: false, uptime: uptime)
        guard case .unavailable(_, let instant) = demand else { return nil }
        return instant
    }

    @Test func theWaitAfterARejectionRestartsForANewToken() {
        var machine = machine(TokenPair(accessToken: "a"))
        #expect(retryAt(&machine, 0) == 2)
        machine.adopted(TokenPair(accessToken: "b"), isOnDisk: true, at: reading(1))
        #expect(retryAt(&machine, 1) == 3)
    }

    /// The response to a request with an earlier token may arrive late.
    @Test func acceptanceOfAnEarlierTokenDoesNotResetALaterOnesBackoff() {
        var machine = machine(TokenPair(accessToken: "a"))
        machine.adopted(TokenPair(accessToken: "b"), isOnDisk: true, at: reading())
        #expect(retryAt(&machine, 0) == 2)
        #expect(retryAt(&machine, 2) == nil)
        machine.accepted(machine.generation - 1)
        #expect(retryAt(&machine, 2) == 6, "the back-off continues to grow")
        machine.accepted(machine.generation)
        #expect(retryAt(&machine, 6) == nil)
        #expect(retryAt(&machine, 6) == 8)
    }

    @Test func withoutAnAccessTokenThereIsNoRetry() {
        // Without a refresh URL, the refresh token has no use.
        var machine = machine(TokenPair(refreshToken: "r"))
        for uptime in [0.0, 10] {
            let demand = machine.demand(rejected: nil, hasWaited: false, uptime: uptime)
            guard case .unavailable(let explanation, nil) = demand else {
                Issue.record("\(demand)")
                continue
            }
            #expect(explanation.code == "no_access_token")
        }
    }
}
