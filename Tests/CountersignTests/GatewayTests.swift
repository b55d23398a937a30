import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import CountersignTesting
import Foundation
import GatewayDialects
import GatewayModel
import Testing

@testable import Countersign

/// Braze's scenario on the native API: a real gateway, a real socket, real signatures.
@Suite(.closing, .timeLimit(.minutes(5)))
struct GatewayTests {
    private func client(
        _ fixture: GatewayFixture, _ change: (inout CountersignConfiguration) -> Void = { _ in }
    ) throws -> CountersignClient {
        var configuration = try fixture.configuration()
        configuration.flushPolicy = .manual
        change(&configuration)
        let client = try CountersignClient(configuration: configuration)
        Closing.afterTest {
            await client.close()
            withExtendedLifetime(fixture) {}
        }
        return client
    }

    private func stored(_ fixture: GatewayFixture) throws -> [String] {
        try fixture.rows("coalesce(name, type)").compactMap(\.[0])
    }

    @Test func expiredTokenThenCallbackThenNewTokenThenEverythingOnce() async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let client = try client(fixture)
        let failures = client.authenticationFailures
        client.identify(userID: "ada", token: try fixture.token(for: "ada", lifetime: -600))
        for number in 0..<250 { client.track("event \(number)") }
        #expect(await client.flush().delivered == 0)
        var iterator = failures.makeAsyncIterator()
        let failure = await iterator.next()
        #expect(failure?.code == .expired)
        #expect(failure?.userID == "ada")
        #expect(failure?.clockSkew == nil)
        client.setToken(try fixture.token(for: "ada"))
        #expect(await client.flush().isComplete)
        #expect(try stored(fixture) == ["identify"] + (0..<250).map { "event \($0)" })
    }

    @Test func providerIsAskedAfterExpiryAndTheEventsGoOut() async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let fresh = try fixture.token(for: "ada")
        let client = try client(fixture) { $0.tokenProvider = { _ in fresh } }
        // The device believes that the token is good: the gateway is the one that says no.
        client.identify(
            userID: "ada", token: try fixture.token(for: "ada", key: GatewayFixture.strangersKey()))
        client.track("one")
        let result = await client.flush()
        #expect(result.isComplete)
        #expect(result.batches.map(\.outcome) == [.tokenProblem, .delivered])
        #expect(result.batches[0].code == "NO_MATCHING_PUBLIC_KEYS")
        #expect(try stored(fixture) == ["identify", "one"])
    }

    /// The platform's transport, for a client whose waits pass by a manual clock.
    private struct WatchedTransport: HTTPTransport {
        private let base = makeDefaultTransport()
        let clock: ManualClock
        let answered: @Sendable (_ status: Int, _ sentAt: TimeInterval) -> Void

        func send(
            _ request: TransportRequest
        ) async throws(HTTPTransportError) -> TransportResponse {
            let sentAt = clock.uptime
            let response = try await base.send(request)
            answered(response.status, sentAt)
            return response
        }
    }

    @Test(arguments: [Enforcement.disabled, .optional])
    func whatIsParkedForWantOfAProviderArrivesWhenTheOperatorStopsRequiringTokens(
        later: Enforcement
    ) async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        var configuration = try fixture.configuration()
        configuration.flushPolicy = FlushPolicy(eventCount: 1, interval: 1, onBackground: false)
        configuration.tokenProvider = { _ in nil }
        let clock = ManualClock(now: Date())
        let (refused, arrived) = (Handshake(), Handshake())
        let arrivedAt = Lock(0.0)
        let client = try CountersignClient(
            configuration: configuration,
            dialect: NativeDialect(
                endpoint: configuration.endpoint, writeKey: configuration.writeKey,
                timeout: configuration.requestTimeout),
            transport: WatchedTransport(clock: clock) { status, sentAt in
                if status == 401 { refused.signal() }
                guard status == 200 else { return }
                arrivedAt.withLock { if $0 == 0 { $0 = sentAt } }
                arrived.signal()
            }, clock: clock, random: { 1 })
        Closing.afterTest {
            await client.close()
            withExtendedLifetime(fixture) {}
        }
        client.identify(userID: "ada")
        for number in 0..<5 { try await client.record("\(number)") }
        await refused.wait()
        // An hour in which provider and gateway are asked in vain.
        let end = clock.uptime + 3_600
        while clock.uptime < end, !Task.isCancelled { clock.advance(to: await clock.waitForSleeper()) }
        #expect(try stored(fixture).isEmpty)
        #expect(await client.snapshot().parked.allSatisfy { !$0.isPaused })

        try fixture.apps.setEnforcement(later, for: fixture.appID)
        try fixture.gateway.refreshApps()
        let switchedAt = clock.uptime
        let time = Task {
            while !Task.isCancelled { clock.advance(to: await clock.waitForSleeper()) }
        }
        await arrived.wait()
        time.cancel()
        await time.value
        let longest = configuration.networkRetry.maximumDelay + configuration.tokenProviderTimeout
        #expect(arrivedAt.withLock { $0 } - switchedAt <= longest)
        #expect(await client.flush().isComplete)
        #expect(try stored(fixture) == ["identify", "0", "1", "2", "3", "4"])
    }

    @Test func eventsThatAreAllRejectedAreKnownAfterOneRequestAndSetAsideOnceOthersAreTaken() async throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        var configuration = try fixture.configuration()
        configuration.flushPolicy = .manual
        let statuses = Lock<[Int]>([])
        let client = try CountersignClient(
            configuration: configuration,
            transport: WatchedTransport(clock: ManualClock()) { status, _ in
                statuses.withLock { $0.append(status) }
            })
        Closing.afterTest {
            await client.close()
            withExtendedLifetime(fixture) {}
        }
        // An event must have a name.
        for _ in 0..<3 { client.track("") }
        await client.flush()
        #expect(statuses.withLock { $0 } == [400], "nobody looks for the bad one among them")
        #expect(await client.snapshot().lastError?.contains("invalid_event") == true)
        // A server that takes nothing at all proves nothing against an event; one that takes others does.
        client.track("good")
        await client.flush()
        #expect(statuses.withLock { $0 } == [400, 200, 400, 400, 400])
        #expect(try stored(fixture) == ["good"])
        #expect(
            try await client.quarantinedEvents().map(\.code) == Array(repeating: "invalid_event", count: 3))
        #expect(await client.snapshot().queued == 0)
    }

    /// "After 50 consecutive failed attempts, retries will be paused until the next session start."
    @Test func fiftyRefusalsPauseUntilTheAppStartsASession() async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        var configuration = try fixture.configuration()
        configuration.flushPolicy = FlushPolicy(eventCount: 1, interval: nil, onBackground: true)
        let clock = ManualClock(now: Date())
        let refusals = Handshake()
        let client = try CountersignClient(
            configuration: configuration,
            transport: WatchedTransport(clock: clock) { status, _ in if status == 401 { refusals.signal() } },
            clock: clock)
        Closing.afterTest {
            await client.close()
            withExtendedLifetime(fixture) {}
        }
        client.identify(
            userID: "ada", token: try fixture.token(for: "ada", key: GatewayFixture.strangersKey()))
        for refusal in 1...50 {
            await refusals.wait(count: refusal)
            if refusal < 50 { clock.advance(to: await clock.waitForSleeper()) }
        }
        await client.pipeline.engine.idle()
        let parked = try #require(await client.snapshot().parked.first)
        #expect(parked.isPaused && parked.failures == 50 && parked.nextAttemptIn == nil)
        try fixture.apps.setEnforcement(.disabled, for: fixture.appID)
        try fixture.gateway.refreshApps()
        clock.advance(by: 86_400)
        try await client.record("later")
        await client.pipeline.engine.idle()
        #expect(try stored(fixture).isEmpty, "paused means paused")

        client.endSession()
        client.startSession()
        await client.pipeline.engine.idle()
        #expect(try stored(fixture) == ["identify", "later"])
    }

    @Test(arguments: [("wrong key", 27), ("other user", 21), ("missing", 26)])
    func faultsHaveTheirCodesAndLoseNothing(fault: String, code: Int) async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let client = try client(fixture)
        let failures = client.authenticationFailures
        let token: String? =
            switch fault {
            case "wrong key": try fixture.token(for: "ada", key: GatewayFixture.strangersKey())
            case "other user": try fixture.token(for: "bob")
            default: nil
            }
        client.identify(userID: "ada", token: token)
        client.track("one")
        await client.flush()
        var iterator = failures.makeAsyncIterator()
        #expect(await iterator.next()?.code.rawValue == code)
        #expect(try stored(fixture).isEmpty)
        #expect(await client.snapshot().queued == 2)
        client.setToken(try fixture.token(for: "ada"))
        #expect(await client.flush().isComplete)
        #expect(try stored(fixture) == ["identify", "one"])
    }

    @Test func optionalDeliversAndReportsAndAnonymousEventsAlwaysPass() async throws {
        let fixture = try GatewayFixture(enforcement: .optional)
        let client = try client(fixture)
        let failures = client.authenticationFailures
        client.track("anonymous")
        client.identify(userID: "ada", token: try fixture.token(for: "ada", lifetime: -600))
        #expect(await client.flush().isComplete)
        var iterator = failures.makeAsyncIterator()
        let failure = await iterator.next()
        #expect(failure?.code == .expired)
        #expect(failure?.isOptional == true)
        #expect(try stored(fixture) == ["anonymous", "identify"])
    }

    @Test func wrongWriteKeyIsAConfigurationProblemAndStops() async throws {
        let fixture = try GatewayFixture()
        let client = try client(fixture) { $0.writeKey = "wk_wrong" }
        client.track("one")
        let result = await client.flush()
        #expect(result.ending == .configurationProblem)
        #expect(result.batches.map(\.code) == ["invalid_write_key"])
        #expect(await client.snapshot().configurationProblem?.hasPrefix("invalid_write_key") == true)
    }

    @Test func eventThatTheGatewayRefusesIsSetAsideAndTheOthersArrive() async throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let client = try client(fixture)
        client.identify(userID: "ada")
        client.track("one")
        // A control character in a user id is not for the gateway.
        client.identify(userID: "a\u{7}da")
        client.identify(userID: "ada")
        client.track("two")
        await client.flush()
        #expect(try await client.quarantinedEvents().isEmpty, "it has failed once")
        client.track("three")
        #expect(await client.flush().isComplete)
        #expect(try await client.quarantinedEvents().map(\.code) == ["invalid_event"])
        #expect(try stored(fixture).filter { $0 != "identify" } == ["one", "two", "three"])
    }
}
