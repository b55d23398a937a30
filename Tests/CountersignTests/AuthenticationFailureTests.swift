import CountersignCore
import CountersignTesting
import Foundation
import Testing

@testable import Countersign

@Suite(.closing, .timeLimit(.minutes(5)))
struct AuthenticationFailureTests {
    private static let now = 1_750_000_000

    @Test func aRefusalIsToldOnceWithEverythingAboutIt() async throws {
        let bench = try Bench()
        bench.gateway.judge { _ in .tokenProblem(.noMatchingPublicKeys) }
        let client = try bench.makeClient()
        let told = Lock([AuthenticationFailure]())
        client.onAuthenticationFailure { failure in told.withLock { $0.append(failure) } }
        client.identify(userID: "ada", token: "a.a.a")
        for _ in 0..<3 { await client.flush() }

        let failures = told.withLock { $0 }
        #expect(failures.count == 1)
        let failure = try #require(failures.first)
        #expect(failure.code == .noMatchingPublicKeys)
        #expect(failure.reason == "NO_MATCHING_PUBLIC_KEYS")
        #expect(failure.userID == "ada")
        #expect(failure.token?.rawValue == "a.a.a")
        #expect(failure.isOptional == false)
        #expect(failure.origin == .server)
        #expect(failure.requestTime == bench.clock.now)
        #expect(failure.occurrences == 1)
        #expect("\(failure)".contains("a.a.a") == false, "the token is redacted")
        #expect(await client.snapshot().authenticationFailures == 3)
    }

    /// "Once" would leave an app that missed the call without another for as long as it runs.
    @Test func aFailureThatStandsIsToldAgainAtEachSession() async throws {
        let bench = try Bench()
        bench.gateway.judge { _ in .tokenProblem(.expired) }
        let client = try bench.makeClient()
        let told = Lock([Int]())
        client.onAuthenticationFailure { failure in told.withLock { $0.append(failure.occurrences) } }
        client.identify(userID: "ada", token: "a.a.a")
        await client.flush()
        for _ in 0..<4 {
            client.startSession()
            await client.flush()
            await client.flush()
        }
        // Within a session a flush that is refused tells nothing new for five minutes.
        #expect(told.withLock { $0 } == [1, 1, 3, 5, 7])
        bench.clock.advance(by: 300)
        await client.flush()
        #expect(told.withLock { $0 } == [1, 1, 3, 5, 7, 10])
    }

    @Test func aFlushThatEndsParkedTellsAgainWhatIsOlderThanFiveMinutes() {
        var throttle = FailureThrottle()
        let failure = AuthenticationFailure(
            code: .expired, reason: "EXPIRED", userID: "ada", token: nil, isOptional: false,
            requestTime: Date(timeIntervalSince1970: 0), origin: .server, clockSkew: nil, occurrences: 1)
        #expect(throttle.record(failure, at: 0)?.occurrences == 1)
        #expect(throttle.flushEnded(parked: [UserKey("ada")], at: 299).isEmpty)
        #expect(throttle.flushEnded(parked: [UserKey("bob")], at: 300).isEmpty)
        #expect(throttle.flushEnded(parked: [UserKey("ada")], at: 300).map(\.occurrences) == [1])
        // However often it happens: one call in five minutes.
        let told = (1...10_000).compactMap { throttle.record(failure, at: 300 + Double($0)) }
        #expect(told.count == 33)
        throttle.succeeded(UserKey("ada"))
        #expect(throttle.sessionStarted(at: 20_000).isEmpty)
    }

    @Test func anotherTokenOrCodeIsNews() async throws {
        let bench = try Bench()
        bench.gateway.judge {
            $0.token == "c.c.c" ? .tokenProblem(.subjectMismatch) : .tokenProblem(.expired)
        }
        let client = try bench.makeClient()
        let told = Lock([String]())
        client.onAuthenticationFailure { failure in
            told.withLock { $0.append("\(failure.token?.rawValue ?? "") \(failure.code.rawValue)") }
        }
        client.identify(userID: "ada", token: "a.a.a")
        await client.flush()
        for token in ["b.b.b", "c.c.c", "c.c.c"] {
            client.setToken(token)
            await client.flush()
        }
        // The last one is the same token again, which is told as such.
        #expect(told.withLock { $0 } == ["a.a.a 22", "b.b.b 22", "c.c.c 21", "c.c.c 21"])
    }

    @Test func aLateSubscriberGetsTheLastOneUntilItIsSolved() async throws {
        let bench = try Bench()
        bench.gateway.judge { $0.token == "a.a.a" ? .tokenProblem(.expired) : nil }
        let client = try bench.makeClient()
        client.identify(userID: "ada", token: "a.a.a")
        await client.flush()
        var iterator = client.authenticationFailures.makeAsyncIterator()
        #expect(await iterator.next()?.code == .expired)

        client.setToken("b.b.b")
        #expect(await client.flush().isComplete)
        let told = Lock(0)
        client.onAuthenticationFailure { _ in told.withLock { $0 += 1 } }
        #expect(told.withLock { $0 } == 0)
        await client.close()
        #expect(await iterator.next() == nil, "the stream ends with the client")
    }
}
