import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

@Suite(.closing, .timeLimit(.minutes(5)))
struct AuthenticationFailureTests {
    @Test func aFlushOfParkedEventsRepeatsFailuresAfterFiveMinutes() {
        var throttle = FailureThrottle()
        let failure = AuthenticationFailure(
            code: .expired, reason: "EXPIRED", userID: "ada", token: nil, isOptional: false,
            requestTime: Date(timeIntervalSince1970: 0), origin: .server, clockSkew: nil, occurrences: 1)
        #expect(throttle.record(failure, at: 0)?.occurrences == 1)
        #expect(throttle.flushEnded(parked: [UserKey("ada")], at: 299).isEmpty)
        #expect(throttle.flushEnded(parked: [UserKey("bob")], at: 300).isEmpty)
        #expect(throttle.flushEnded(parked: [UserKey("ada")], at: 300).map(\.occurrences) == [1])
        // At most one callback in five minutes, for any number of failures.
        let told = (1...10_000).compactMap { throttle.record(failure, at: 300 + Double($0)) }
        #expect(told.count == 33)
        throttle.succeeded(UserKey("ada"))
        #expect(throttle.sessionStarted(at: 20_000).isEmpty)
    }

    @Test func aNewSubscriberGetsTheLastFailureUnlessItIsResolved() async throws {
        let bench = try Bench()
        bench.gateway.respond { $0.token == "a.a.a" ? .tokenProblem(.expired) : nil }
        let client = try bench.makeClient()
        client.identify(userID: "ada", token: "a.a.a")
        await client.flush()
        var iterator = client.authenticationFailures.makeAsyncIterator()
        let failure = try #require(await iterator.next())
        #expect(failure.code == .expired)
        #expect(failure.requestTime == bench.clock.now)
        #expect("\(failure)".contains("a.a.a") == false, "the token is redacted")

        client.setToken("b.b.b")
        #expect(await client.flush().isComplete)
        let told = Lock(0)
        client.onAuthenticationFailure { _ in told.withLock { $0 += 1 } }
        #expect(told.withLock { $0 } == 0)
        await client.close()
        #expect(await iterator.next() == nil, "the stream ends with the client")
    }

    /// The test's time limit ends the wait for a stream that does not end.
    @Test func aStreamOfAClosedClientEnds() async throws {
        let (bench, client) = try Bench.open()
        bench.gateway.respond { _ in .tokenProblem(.expired) }
        client.identify(userID: "ada", token: "a.a.a")
        await client.flush()
        await client.close()
        var codes: [AuthErrorCode] = []
        for await failure in client.authenticationFailures { codes.append(failure.code) }
        #expect(codes == [.expired])
    }
}
