import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayModel
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignTransport

/// A client and a gateway over a socket, with signed tokens.
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

    /// The platform's transport. Records the statuses of its responses.
    private struct WatchedTransport: HTTPTransport {
        private let base = makeDefaultTransport()
        let statuses = Lock<[Int]>([])

        func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
            let response = try await base.send(request)
            statuses.withLock { $0.append(response.status) }
            return response
        }
    }

    @Test func propertiesWhoseNamesDifferInUnicodeFormAreBothStored() async throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let client = try client(fixture)
        var properties: JSONObject = ["na\u{EF}ve": 1]
        properties["nai\u{308}ve"] = 2
        client.track("E", properties: properties)
        #expect(await client.flush().isComplete)
        let body = try #require(try fixture.rows("body").first?[0])
        #expect(body.contains("\"na\u{EF}ve\":1") && body.contains("\"nai\u{308}ve\":2"))
    }

    @Test(arguments: [59, 60, 20_000], [true, false])
    func aGatewayAcceptsDeeplyNestedEvents(levels: Int, isTrait: Bool) async throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let client = try client(fixture)
        let value = (0..<levels).reduce(JSONValue.integer(1)) { inner, _ in ["a": inner] }
        if isTrait {
            client.identify(userID: "ada", traits: ["value": value])
        } else {
            client.track("deep", properties: ["value": value])
        }
        #expect(await client.flush().isComplete)
        #expect(try await client.quarantinedEvents().isEmpty)
        #expect(try stored(fixture).count == 1)
    }

    @Test func digitsAreStoredAsTheyWereRecorded() async throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let client = try client(fixture)
        client.track(
            "digits",
            properties: [
                "a": 9_007_199_254_740_993, "b": Int64.max, "c": Int64.min, "d": UInt64.max,
                "e": Decimal(string: "10.04"), "f": Decimal(string: "12345678901234567890.123"),
                "g": Float(0.1),
            ])
        #expect(await client.flush().isComplete)
        let body = try #require(try fixture.rows("body").first?[0])
        let expected =
            #"{"a":9007199254740993,"b":9223372036854775807,"c":-9223372036854775808,"d":"18446744073709551615","#
            + #""e":10.04,"f":"12345678901234567890.123","g":0.1}"#
        #expect(body.contains(expected), "\(body)")
    }

    @Test func fullyRejectedBatchesAreQuarantinedOnceAnotherEventIsAccepted() async throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        var configuration = try fixture.configuration()
        configuration.flushPolicy = .manual
        let transport = WatchedTransport()
        let client = try CountersignClient(configuration: configuration, transport: transport)
        Closing.afterTest {
            await client.close()
            withExtendedLifetime(fixture) {}
        }
        // An event must have a name.
        for _ in 0..<3 { client.track("") }
        await client.flush()
        #expect(transport.statuses.withLock { $0 } == [400], "a fully rejected batch is not bisected")
        #expect(await client.snapshot().lastError?.contains("invalid_event") == true)
        // The bad events are isolated only after the server has accepted another event.
        client.track("good")
        await client.flush()
        #expect(transport.statuses.withLock { $0 } == [400, 200, 400, 400, 400])
        #expect(try stored(fixture) == ["good"])
        #expect(
            try await client.quarantinedEvents().map(\.code) == Array(repeating: "invalid_event", count: 3))
        #expect(await client.snapshot().queued == 0)
    }

    @Test(arguments: [("expired", 22), ("wrong key", 27), ("other user", 21), ("missing", 26)])
    func rejectedTokensReportTheirCodeAndLoseNoEvent(fault: String, code: Int) async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let client = try client(fixture)
        let failures = client.authenticationFailures
        let token: String? =
            switch fault {
            case "expired": try fixture.token(for: "ada", lifetime: -600)
            case "wrong key": try fixture.token(for: "ada", key: SharedKeys.stranger())
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

    @Test func withOptionalEnforcementInvalidTokensAreReportedAndAllEventsStored() async throws {
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

    @Test func aWrongWriteKeyIsAConfigurationProblemThatEndsTheFlush() async throws {
        let fixture = try GatewayFixture()
        let client = try client(fixture) { $0.writeKey = "wk_wrong" }
        client.track("one")
        let result = await client.flush()
        #expect(result.ending == .configurationProblem)
        #expect(result.batches.map(\.code) == ["invalid_write_key"])
        #expect(await client.snapshot().configurationProblem?.hasPrefix("invalid_write_key") == true)
    }
}
