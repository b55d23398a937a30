import Foundation
import Testing

@testable import Countersign

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

    @Test func aTokenIsRefreshedBeforeItsEndAndHasLivedThen() {
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

    @Test func onlyAFreshTokenThatNobodyTookIsSuspicious() {
        var token = token("a", lifetime: 1_000)
        #expect(!token.isFresh(at: 1, window: 30), "it is the app's")
        token.isRefreshed()
        #expect(token.isFresh(at: 1, window: 30))
        #expect(!token.isFresh(at: 30, window: 30))
        token.isAccepted()
        #expect(!token.isFresh(at: 1, window: 30))
    }

    @Test func aDormantPairIsKnownAndNotUsed() {
        var token = TokenInUse()
        token.loaded(TokenPair(accessToken: "a"))
        #expect(token.credential == nil)
        #expect(token.known?.accessToken == "a")
        token.dropDormant()
        #expect(token.known == nil)
    }

    @Test func eachRefusedTokenCountsOnceAndASuccessEndsTheRow() {
        var rate = RefreshRate()
        let before = [1, 1].map { rate.refused($0, maximum: 2) }
        #expect(before == [false, false])
        rate.accepted()
        let after = [2, 3, 3, 4].map { rate.refused($0, maximum: 2) }
        #expect(after == [false, true, false, false], "after one too many the count begins again")
    }

    @Test func refreshesAreCountedWithinTheWindow() {
        var rate = RefreshRate()
        for uptime in [0.0, 1, 2] { rate.refreshed(at: uptime) }
        #expect(rate.count(at: 29, window: 30) == 3)
        #expect(rate.count(at: 31, window: 30) == 1)
    }

    @Test func aRefusedTokenIsSentAgainOnceAfterEachWait() {
        var resending = Resending()
        #expect(resending.take(at: 0, retry: retry) == 2)
        #expect(resending.take(at: 1, retry: retry) == 2)
        #expect(resending.take(at: 2, retry: retry) == nil)
        #expect(resending.take(at: 2, retry: retry) == 6)
        resending.accepted()
        #expect(resending.take(at: 6, retry: retry) == nil)
        #expect(resending.take(at: 6, retry: retry) == 8)
    }

    @Test func anObstacleLastsASecondAtLeastAndAnswersOfNoUseAddUp() {
        var obstacle = RefreshObstacle()
        obstacle.wait(problem, retry: retry, serverDelay: nil, uptime: 0, fraction: 0)
        #expect(obstacle.state == .waiting(until: 1, problem))
        obstacle.pass()
        #expect(obstacle.wait == nil)
        let isTooMany = (0..<3).map { _ in obstacle.isUnusable(maximum: 2) }
        #expect(isTooMany == [false, true, false])
    }
}
