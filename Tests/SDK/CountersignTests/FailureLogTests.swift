import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery
@testable import CountersignLocations
@testable import CountersignTransport

/// The log at its default level, warnings.
@Suite(.closing, .timeLimit(.minutes(5)))
struct FailureLogTests {
    private let lines = Lock([String]())

    private func open(
        _ answer: @escaping ScriptedTransport.Handler,
        _ configure: (inout CountersignConfiguration) -> Void = { _ in }
    ) throws -> CountersignClient {
        var bench = try Bench()
        #expect(bench.configuration.logLevel == .warning)
        bench.configuration.log = CountersignLog(isEnabled: { $0 >= .warning }) { [lines] _, text, values in
            lines.withLock { $0.append(CountersignLog.line(text, values)) }
        }
        configure(&bench.configuration)
        bench.transport.setHandler(answer)
        return try bench.makeClient()
    }

    private func rejection(_ code: AuthErrorCode, _ reason: String? = nil) -> TransportResponse {
        .json(
            401,
            #"{"success":false,"auth_error":{"error_code":\#(code.rawValue),"reason":"\#(reason ?? code.reason)"}}"#
        )
    }

    @Test func aMissingTokenLogsOneWarningWithTheRemedyForEachUser() async throws {
        let answer = rejection(.missingToken)
        let client = try open { _ in answer }
        for user in ["ada", "bob"] {
            client.identify(userID: user)
            for _ in 0..<3 { #expect(await client.flush().ending == .parked) }
        }
        let line =
            "a token is missing or was not accepted, the user's events wait code=26 reason=MISSING_TOKEN "
            + "remedy=Pass the token when identifying the user, or set a token provider."
        #expect(lines.withLock { $0 } == [line, line])
    }

    @Test func anotherFailureOfTheSameUserIsAnotherWarning() async throws {
        let code = Lock(AuthErrorCode.expired)
        let client = try open { _ in self.rejection(code.withLock { $0 }) }
        client.identify(userID: "ada", token: "secret.secret.secret")
        await client.flush()
        code.withLock { $0 = .noMatchingPublicKeys }
        await client.flush()
        let text = lines.withLock { $0 }
        #expect(text.count == 2)
        #expect(text.first?.contains("code=22 reason=EXPIRED remedy=Sign a new token") == true)
        #expect(text.last?.contains("code=27") == true)
        #expect(!text.joined().contains("secret"))
    }

    @Test func aMalformedTokenLogsAWarningWithoutTheToken() async throws {
        let client = try open { _ in self.rejection(.missingToken) }
        client.identify(userID: "ada", token: "not a token\n")
        await client.flush()
        let text = lines.withLock { $0 }
        #expect(
            text.contains { $0.contains("remedy=pass a new token for the user, or set a token provider") })
        #expect(!text.joined().contains("not a token"))
    }

    @Test func callsWithoutAUserAreWarnings() throws {
        let client = try open { _ in TransportResponse(status: 200) }
        client.setToken("secret")
        client.identify(userID: "", token: "secret")
        #expect(
            lines.withLock { $0 } == ["a token without a user is ignored", "a user without an id is ignored"])
    }

    @Test func aProviderThatFailsIsAWarning() async throws {
        let client = try open({ _ in self.rejection(.missingToken) }) { $0.tokenProvider = { _ in nil } }
        client.identify(userID: "ada")
        await client.flush()
        #expect(
            lines.withLock { $0 }.contains {
                $0.contains(
                    "reason=no_token remedy=have the token provider return a token that the server accepts")
            })
    }

    /// Some servers copy the request into their error responses.
    @Test func aTokenThatTheServerRepeatsIsNeitherLoggedNorShown() async throws {
        let answers = Lock([
            rejection(.expired, "secret.secret.secret"),
            .json(503, #"{"code":"busy","reason":"Bearer secret.secret.secret"}"#),
            .json(404, #"{"code":"secret.secret.secret","reason":"secret.secret.secret"}"#),
        ])
        let client = try open { _ in answers.withLock { $0.removeFirst() } }
        client.identify(userID: "ada", token: "secret.secret.secret")
        for _ in 0..<3 { #expect(!"\(await client.flush())\(await client.snapshot())".contains("secret")) }
        #expect(lines.withLock { $0 }.count == 3)
        #expect(!lines.withLock { $0.joined() }.contains("secret"))
    }

    @Test func aServerThatCannotBeReachedLogsOneWarning() async throws {
        let failure = Lock(HTTPTransportError(.cannotConnect, "Couldn't connect to server"))
        let client = try open { _ in throw failure.withLock { $0 } }
        client.track("A")
        #expect(
            await client.flush().description == "delivered 0, still queued 1 (interrupted: cannot_connect)")
        failure.withLock { $0 = HTTPTransportError(.timedOut, "") }
        await client.flush()
        #expect(
            lines.withLock { $0 } == [
                "the server was not reached, events stay queued code=cannot_connect reason=Couldn't connect to server "
                    + "remedy=check the URL and the network; the SDK tries again"
            ])
    }

    @Test func aFailingServerIsLoggedOnce() async throws {
        let client = try open { _ in .json(503, "") }
        client.track("A")
        for _ in 0..<3 { await client.flush() }
        #expect(lines.withLock { $0 }.count == 1)
        #expect(lines.withLock { $0 }.first?.contains("code=http_503") == true)
    }

    @Test func aResultSaysHowManyEventsWaitAndWhy() {
        func result(_ ending: FlushResult.Ending, queued: Int, _ codes: String...) -> String {
            let batches = codes.map {
                FlushResult.Batch(
                    userID: nil, eventCount: 1, deliveredCount: 0, outcome: .tokenProblem, code: $0)
            }
            return "\(FlushResult(batches: batches, ending: ending, queued: queued))"
        }
        #expect(result(.drained, queued: 0) == "delivered 0, still queued 0")
        #expect(result(.parked, queued: 2) == "delivered 0, still queued 2 (parked)")
        #expect(
            result(.parked, queued: 2, "EXPIRED", "EXPIRED", "REVOKED")
                == "delivered 0, still queued 2 (parked: EXPIRED, REVOKED)")
    }
}
