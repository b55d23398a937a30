import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

@Suite(.closing)
struct TokenProviderTests {
    private static let now = 1_750_000_000

    @Test func expiryIsCheckedInServerTime() async throws {
        var bench = try Bench()
        let asked = Lock([TokenRequest.Reason]())
        let fresh = SignedToken.fake(subject: "ada", expiresAt: Self.now + 200_000)
        bench.configuration.tokenProvider = { request in
            asked.withLock { $0.append(request.reason) }
            return fresh
        }
        // The server's clock is a day ahead of the device.
        bench.gateway.respond { received in
            .json(
                200, #"{"success":true,"accepted":\#(received.messages.count),"rejected":[]}"#,
                headers: [("Date", "Mon, 16 Jun 2025 15:06:40 GMT")])
        }
        let client = try bench.makeClient()
        client.identify(userID: "ada", token: SignedToken.fake(subject: "ada", expiresAt: Self.now + 3_600))
        #expect(await client.flush().isComplete)
        #expect(
            asked.withLock { $0 }.isEmpty, "by the device clock the token is good, and nothing else is known")
        client.track("later")
        #expect(await client.flush().isComplete)
        #expect(asked.withLock { $0 } == [.expired])
    }

    @Test(arguments: [
        ("a.a.a", "token_unchanged"), ("not a token", "token_malformed"),
        (nil, "no_token"), ("throw", "provider_failed"),
    ])
    func aProviderWithoutANewTokenIsReportedAndTheOldOneNotResent(answer: String?, reason: String)
        async throws
    {
        var bench = try Bench()
        bench.configuration.tokenProvider = { _ in
            if answer == "throw" { throw CocoaError(.fileNoSuchFile) }
            return answer
        }
        bench.gateway.respond { _ in .tokenProblem(.expired) }
        let client = try bench.makeClient()
        let told = Lock([String]())
        client.onAuthenticationFailure { failure in told.withLock { $0.append(failure.reason) } }
        client.identify(userID: "ada", token: "a.a.a")
        let result = await client.flush()
        #expect(result.batches.map(\.code) == ["EXPIRED", reason])
        #expect(bench.gateway.batches.count == 1)
        #expect(told.withLock { $0 } == ["EXPIRED", reason])
        let snapshot = await client.snapshot()
        #expect(snapshot.parked.map(\.reason) == [reason])
        #expect(snapshot.queued == 1)
    }

    @Test(.timeLimit(.minutes(5))) func theWaitForAHangingProviderEndsAndItsLateTokenIsUsed() async throws {
        var bench = try Bench()
        let gate = Handshake()
        let isAsked = Handshake()
        let isTaken = Handshake()
        let calls = Lock(0)
        bench.configuration.tokenProvider = { _ in
            calls.withLock { $0 += 1 }
            isAsked.signal()
            await gate.wait()
            return "late.late.late"
        }
        // Not manual, so that a new token resumes sending.
        bench.configuration.flushPolicy = FlushPolicy(eventCount: 1_000, interval: nil, onBackground: false)
        bench.gateway.respond { received in
            if received.token == nil { return .tokenProblem(.missingToken) }
            isTaken.signal()
            return nil
        }
        let client = try bench.makeClient()
        client.identify(userID: "ada")
        async let first = client.flush()
        await isAsked.wait()
        bench.clock.advance(to: await bench.clock.waitForSleeper())
        #expect(await first.batches.map(\.code) == ["MISSING_TOKEN"])
        #expect(await client.snapshot().parked.map(\.reason) == ["provider_timed_out"])
        // The provider still runs, so it is not called again.
        #expect(await client.flush().batches.map(\.code) == ["MISSING_TOKEN"])
        #expect(calls.withLock { $0 } == 1)

        gate.signal()
        await isTaken.wait()
        #expect(bench.gateway.batches.last?.token == "late.late.late")
        #expect(calls.withLock { $0 } == 1)
    }

    /// A provider that enforces the time limit itself has no pending call that could still return.
    @Test func aProviderThatTimesOutItselfIsCalledAgain() async throws {
        var bench = try Bench()
        let calls = Lock(0)
        bench.configuration.tokenProvider = { _ in
            let number = calls.withLock { calls in
                calls += 1
                return calls
            }
            guard number > 1 else { throw TokenProviderTimeout() }
            return "a.b.c"
        }
        bench.gateway.respond { $0.token == nil ? .tokenProblem(.missingToken) : nil }
        let client = try bench.makeClient()
        client.identify(userID: "ada")
        #expect(await client.flush().batches.map(\.code) == ["MISSING_TOKEN"])
        #expect(await client.snapshot().parked.map(\.reason) == ["provider_timed_out"])
        #expect(await client.flush().isComplete)
        #expect(calls.withLock { $0 } == 2)
    }

    @Test(arguments: [false, true])
    func aTokenRequestedBeforeALogOutOrWipeIsNotStoredAfterIt(wipes: Bool) async throws {
        let (bench, client) = try Bench.open()
        client.identify(userID: "ada")
        if wipes { try await client.wipeData() } else { await client.logOut() }
        // The late result of an earlier provider call.
        let token = try #require(SignedToken("late.late.late"))
        let before = UserTokenSource.Baseline(generation: 0, removals: 0)
        client.pipeline.engine.post { [tokens = client.tokens] in
            await tokens.takeLate(token, for: UserKey("ada"), since: before)
        }
        client.identify(userID: "ada")
        #expect(await client.flush().isComplete)
        #expect(Set(bench.gateway.batches.map(\.token)) == [nil])
    }

    /// Simulates a system on which a blocking provider occupies a thread of the shared pool.
    @Test(.timeLimit(.minutes(5))) func aUserWaitingForAnotherUsersCallIsPending() async throws {
        var bench = try Bench()
        let (isCalled, gate) = (Handshake(), Handshake())
        let calls = Lock([String]())
        bench.configuration.tokenProvider = { request in
            calls.withLock { $0.append(request.userID) }
            isCalled.signal()
            await gate.wait()
            return "p.p.p"
        }
        let storage = bench.makeStorage()
        let provider = bench.configuration.tokenProvider
        let source = UserTokenSource(
            settings: UserTokenSource.Settings(
                provider: provider, timeout: 30, retry: .network, maximumCalls: 1),
            stored: SignedUserTokens(
                tokens: StoredTokens(
                    store: FileTokenStore(directory: bench.directory), storage: storage, log: nil),
                users: StoredUser(directory: bench.directory, writeKey: "wk")),
            clock: bench.clock)
        let (works, work) = AsyncStream.makeStream(of: CredentialAction.self)
        var posted = works.makeAsyncIterator()
        func ask(_ user: String) async -> String {
            let decision = await source.credential(
                for: UserKey(user), replacing: nil, post: { work.yield($0) })
            switch decision {
            case .ready: return "ready"
            case .pending: return "pending"
            case .doubtful(_, let problem), .unavailable(let problem, _): return problem.code
            }
        }
        #expect(await ask("ada") == "pending")
        #expect(await ask("bob") == "pending")
        await isCalled.wait()
        bench.clock.advance(to: await bench.clock.waitForSleeper())
        let first = try #require(await posted.next())
        let updates = await first().map { update in
            switch update {
            case .changed(let user, _): "changed \(user.userID ?? "")"
            case .resolved(let user): "resolved \(user.userID ?? "")"
            case .removed(let user): "removed \(user.userID ?? "")"
            case .failed(let failure): failure.reason
            }
        }
        // The end of bob's wait is reported once.
        #expect(updates == ["provider_timed_out", "resolved ada", "resolved bob"])
        #expect(await first().count == 2)
        #expect(calls.withLock { $0 } == ["ada"])
        // The call for ada still runs, with no known end.
        #expect(await ask("bob") == "provider_busy")
        gate.signal()
        await storage.close()
    }

    @Test(.timeLimit(.minutes(5))) func flushInsideTheProviderDoesNotDeadlock() async throws {
        var bench = try Bench()
        let client = Lock<CountersignClient?>(nil)
        let ending = Lock<FlushResult.Ending?>(nil)
        bench.configuration.tokenProvider = { _ in
            let result = await client.withLock { $0 }?.flush()
            ending.withLock { $0 = result?.ending }
            return "p.p.p"
        }
        let made = try bench.makeClient()
        client.withLock { $0 = made }
        made.identify(userID: "ada")
        #expect(await made.flush().isComplete)
        #expect(ending.withLock { $0 } == .calledFromTokenProvider)
        await made.close()
        client.withLock { $0 = nil }
    }
}
