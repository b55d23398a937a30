import CountersignDelivery
import CountersignTransport
import Foundation
import Testing

@testable import CountersignLocations

/// The parts of the refresh machine, each alone.
struct RefreshPartsTests {
    private let retry = RetryPolicy(baseDelay: 2, maximumDelay: 100)
    private let problem = ServerAnswer.Explanation("code", "words")

    private func token(
        _ access: String, lifetime: TimeInterval?, isOnDisk: Bool? = true, at uptime: TimeInterval = 0
    ) -> TokenInUse {
        var token = TokenInUse()
        _ = token.take(
            TokenPair(accessToken: access), lifetime: lifetime, isOnDisk: isOnDisk, leeway: 60, share: 0.04,
            uptime: uptime, fraction: 0)
        return token
    }

    @Test func aTokenIsDueForRefreshShortlyBeforeItsExpiry() {
        let token = token("a", lifetime: 1_000)
        #expect(token.refreshAt == 960)
        #expect(!token.hasLived(at: 959))
        #expect(token.hasLived(at: 960))
        #expect(self.token("a", lifetime: nil).refreshAt == nil)
        // Half a second is no leeway, and servers count whole seconds.
        #expect(self.token("a", lifetime: 10).refreshAt == 10)
        #expect(self.token("a", lifetime: 10).hasLived(at: 9))
    }

    @Test func onlyAnotherAccessTokenIsANewGeneration() {
        var token = token("a", lifetime: nil)
        #expect(token.generation == 1)
        for (access, expected) in [("a", 1), ("b", 2), ("b", 2)] {
            _ = token.take(
                TokenPair(accessToken: access), lifetime: nil, leeway: 60, share: 0.04, uptime: 0, fraction: 0
            )
            #expect(token.generation == expected)
        }
        token.forget()
        #expect(token.generation == 3)
        #expect(token.credential == nil)
    }

    @Test func aTokenIsFreshUntilItIsAcceptedOrItsWindowEnds() {
        var token = token("a", lifetime: 1_000)
        #expect(!token.isFresh(at: 1, window: 30), "it is the app's")
        token.isRefreshed()
        #expect(token.isFresh(at: 1, window: 30))
        #expect(!token.isFresh(at: 30, window: 30))
        token.isAccepted()
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
        obstacle.wait(problem, retry: retry, serverDelay: nil, uptime: 0, fraction: 0)
        #expect(obstacle.state == .waiting(until: 1, problem))
        obstacle.pass()
        #expect(obstacle.wait == nil)
        let isTooMuch = [0, 99, 100, 101].map { obstacle.isUnusable(at: $0, count: 2, span: 100) }
        #expect(isTooMuch == [false, false, true, false])
        let isForGood = [0, 100, 101, 102].map { obstacle.isRejectedForGood(at: $0, count: 3, span: 100) }
        #expect(isForGood == [false, false, true, true])
        obstacle.forgive()
        let isStillForGood = obstacle.isRejectedForGood(at: 300, count: 3, span: 100)
        #expect(!isStillForGood)
    }

    @Test func acceptanceAndStorageAreRecordedForOneTokenOnly() {
        var token = token("a", lifetime: 1_000, isOnDisk: false)
        token.isRefreshed()
        token.isAccepted()
        _ = token.take(
            TokenPair(accessToken: "b"), lifetime: 1_000, leeway: 60, share: 0.04, uptime: 0, fraction: 0)
        #expect(token.isFresh(at: 1, window: 30), "no server has accepted this token yet")
        #expect(!token.isOnDisk)
    }

    // MARK: The machine between its parts

    private let now = Date(timeIntervalSince1970: 1_750_000_000)
    private let granted = RefreshAnswer(
        TransportResponse(
            status: 200, body: Array(#"{"access_token":"late","refresh_token":"later"}"#.utf8)),
        configuration: AuthorizationConfiguration())

    private func machine(refreshToken: String?) -> RefreshMachine {
        var machine = RefreshMachine(configuration: AuthorizationConfiguration())
        machine.adopted(
            TokenPair(accessToken: "a", refreshToken: refreshToken), isOnDisk: true, now: now, uptime: 0,
            fraction: 1)
        return machine
    }

    /// The app hands over other tokens; they are not on disk yet.
    private func handOver(_ machine: inout RefreshMachine) {
        var other = AuthorizationConfiguration()
        (other.accessToken, other.refreshToken) = ("x", "y")
        let next = machine.configure(
            other, isSparse: false, handedOverAt: 0, now: now, uptime: 0, fraction: 1)
        #expect(next?.accessToken == "x")
    }

    @Test func newTokensFromTheAppEndARefreshAtEveryStep() {
        for steps in 1...3 {
            var machine = machine(refreshToken: "r")
            let pair = machine.credential
            var action = machine.begin(uptime: 0)
            if steps > 1 { action = machine.locked(stored: pair, now: now, uptime: 0, fraction: 1) }
            if steps > 2 { action = machine.answered(granted, now: now, uptime: 0, fraction: 1) }
            #expect(action != .finish)
            handOver(&machine)
            action =
                switch steps {
                case 1: machine.locked(stored: pair, now: now, uptime: 0, fraction: 1)
                case 2: machine.answered(granted, now: now, uptime: 0, fraction: 1)
                default: machine.saved(nil, uptime: 0, fraction: 1)
                }
            #expect(action == .finish, "\(steps)")
            #expect(machine.credential?.accessToken == "a", "\(steps)")
        }
    }

    @Test func theWaitAfterARejectionRestartsForANewToken() {
        var machine = machine(refreshToken: nil)
        func retryAt(_ uptime: TimeInterval) -> TimeInterval? {
            let demand = machine.demand(rejected: machine.generation, hasWaited: false, uptime: uptime)
            guard case .unavailable(_, let instant) = demand else { return nil }
            return instant
        }
        #expect(retryAt(0) == 2)
        machine.adopted(TokenPair(accessToken: "b"), isOnDisk: true, now: now, uptime: 1, fraction: 1)
        #expect(retryAt(1) == 3)
    }
}
