import CountersignCore
import CountersignJOSE
import CountersignTransport
import Foundation
import Testing

@testable import CountersignCLI

/// Returns scripted responses and records the requests.
private final class Script: HTTPTransport {
    private let answers: Lock<[TransportResponse?]>
    private let error: HTTPTransportError
    let sent = Lock<[TransportRequest]>([])

    init(
        _ answers: [TransportResponse?],
        error: HTTPTransportError = HTTPTransportError(.connectionLost, "gone")
    ) {
        self.answers = Lock(answers)
        self.error = error
    }

    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        sent.withLock { $0.append(request) }
        let answer = answers.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        guard let answer else { throw error }
        return answer
    }
}

@Suite(.timeLimit(.minutes(5)))
struct SendRunTests {
    private static func stored(_ count: Int, rejected: String = "") -> TransportResponse {
        TransportResponse(
            status: 200,
            body: Array(
                #"{"success":true,"accepted":\#(count),"duplicates":0,"rejected":[\#(rejected)]}"#.utf8))
    }

    private func run(
        _ count: Int, _ answers: [TransportResponse?], key: SigningKey? = nil,
        users: [String] = ["user-1"]
    ) async throws -> (SendRun.Outcome, Script, [Double]) {
        let script = Script(answers)
        let pauses = Lock<[Double]>([])
        let outcome = try await run(count, script, pauses: pauses, key: key, users: users)
        return (outcome, script, pauses.withLock { $0 })
    }

    /// Sends events of the users in turn. `resumes` gets the positions after which an interrupted run resumes.
    private func run(
        _ count: Int, _ script: Script, pauses: Lock<[Double]> = Lock([]), said: Lock<[String]> = Lock([]),
        resumes: Lock<[Int]> = Lock([]), key: SigningKey? = nil, token: String? = nil,
        users: [String] = ["user-1"]
    ) async throws -> SendRun.Outcome {
        let url = try #require(URL(string: "http://gateway.example:8787"))
        var run = SendRun(
            events: (0..<count).map { index in
                SendEvent(
                    line: index + 1, userID: users[index % users.count],
                    message: ["n": .integer(Int64(index))])
            }, url: url, writeKey: "key", signingKey: key, token: token,
            progress: { _, position in resumes.withLock { $0.append(position) } },
            say: { line in said.withLock { $0.append(line) } },
            pause: { seconds in
                // Ends a run that would retry forever.
                pauses.withLock { $0.append(seconds) }
                if pauses.withLock({ $0.count }) > 99 { throw CancellationError() }
            })
        run.transport = script
        return try await run.run()
    }

    @Test func sendingFailsWithTheCauseAfter30SecondsWithoutAConnection() async throws {
        let pauses = Lock<[Double]>([])
        let said = Lock<[String]>([])
        let script = Script([], error: HTTPTransportError(.cannotConnect, "Could not resolve hostname"))
        let error = await #expect(throws: CommandError.self) {
            try await run(3, script, pauses: pauses, said: said)
        }
        #expect(error?.code == .unavailable)
        #expect(error?.reason.contains("Could not resolve hostname") == true)
        #expect(script.sent.withLock { $0.count } == 5)
        #expect(pauses.withLock { $0.reduce(0, +) } == 30)
        #expect(said.withLock { $0.count } == 4)
        #expect(said.withLock { $0.allSatisfy { $0.contains("Could not resolve hostname") } })
    }

    @Test func connectionErrorsAfterASuccessAreRetriedLonger() async throws {
        let pauses = Lock<[Double]>([])
        let said = Lock<[String]>([])
        let nothing = [TransportResponse?](repeating: nil, count: 20)
        let script = Script(
            [Self.stored(100)] + nothing + [Self.stored(50)],
            error: HTTPTransportError(.tls, "certificate has expired"))
        let outcome = try await run(150, script, pauses: pauses, said: said)
        #expect(outcome.accepted == 150)
        #expect(pauses.withLock { $0.count } == 20)
        #expect(said.withLock { $0.allSatisfy { $0.contains("certificate has expired") } })
    }

    @Test func temporaryErrorsAreRetriedAndNothingIsSkipped() async throws {
        let busy = TransportResponse(status: 503, headers: [("Retry-After", "7")])
        let (outcome, script, pauses) = try await run(150, [nil, busy, Self.stored(100), Self.stored(50)])
        #expect(outcome == .init(accepted: 150, duplicates: 0, rejected: []))
        #expect(script.sent.withLock { $0.count } == 4)
        #expect(pauses.count == 2 && pauses[1] == 7)
    }

    @Test func aBatchThatIsTooLargeIsHalved() async throws {
        let large = TransportResponse(status: 413)
        let (outcome, script, _) = try await run(100, [large, Self.stored(50), Self.stored(50)])
        #expect(outcome.accepted == 100)
        #expect(script.sent.withLock { $0.count } == 3)
    }

    @Test func invalidCountsOfAServerDoNotOverflow() async throws {
        let error = await #expect(throws: CommandError.self) { try await run(150, [Self.stored(.max)]) }
        #expect(error?.code == .failed)
    }

    @Test func aRejectedTokenEndsTheRunWithItsHint() async throws {
        let rejected = TransportResponse(
            status: 401, body: Array(#"{"auth_error":{"hint":"mint a new token\u001b[2J"}}"#.utf8))
        let error = await #expect(throws: CommandError.self) { try await run(3, [rejected]) }
        #expect(error?.code == .notAuthorized)
        #expect(error?.reason.contains("mint a new token\u{FFFD}[2J") == true)
    }

    private static let unauthorized = TransportResponse(
        status: 401, body: Array(#"{"auth_error":{"code":26,"hint":"send a token"}}"#.utf8))

    @Test func aUserWithoutATokenDoesNotStopTheOthers() async throws {
        let blocked = TransportResponse(
            status: 403, body: Array(#"{"code":"user_blocked","reason":"blocked"}"#.utf8))
        let (outcome, script, _) = try await run(
            4, [Self.unauthorized, Self.stored(1), Self.unauthorized, Self.stored(1), blocked],
            users: ["user-1", "user-2"])
        #expect(outcome.accepted == 2)
        #expect(
            outcome.rejected == [.init(line: 2, reason: "send a token"), .init(line: 4, reason: "blocked")])
        #expect(script.sent.withLock { $0.count } == 5)
    }

    @Test func aFileWithoutAnyAcceptedTokenStartsAgainNextTime() async throws {
        let resumes = Lock<[Int]>([])
        let error = await #expect(throws: CommandError.self) {
            try await run(1, Script([Self.unauthorized]), resumes: resumes)
        }
        #expect(error?.code == .notAuthorized)
        #expect(resumes.withLock { $0.last } == 0)
    }

    /// If the next run resumed after a rejected event, that run would report the event as stored.
    @Test func anInterruptedRunResumesAtTheFirstRejectedEvent() async throws {
        let resumes = Lock<[Int]>([])
        let script = Script([
            Self.stored(1), Self.unauthorized, Self.stored(1), TransportResponse(status: 404, body: []),
        ])
        let error = await #expect(throws: CommandError.self) {
            try await run(
                4, script, resumes: resumes, token: "a.b.c", users: ["user-1", "user-2", "user-3", "user-4"])
        }
        #expect(error?.code == .failed)
        #expect(resumes.withLock { $0 } == [1, 1, 1])
    }

    @Test func aResponseThatDoesNotCountAllEventsIsAFailure() async throws {
        for body in ["{}", #"{"accepted":1,"duplicates":0,"rejected":[]}"#] {
            let script = Script([TransportResponse(status: 200, body: Array(body.utf8))])
            let error = await #expect(throws: CommandError.self) { try await run(2, script) }
            #expect(error?.code == .failed, "\(body)")
        }
    }

    @Test func anUnknownWriteKeyEndsTheRunAfterOneRequest() async throws {
        let unknown = TransportResponse(status: 401, body: Array(#"{"code":"invalid_write_key"}"#.utf8))
        let script = Script([unknown])
        let error = await #expect(throws: CommandError.self) { try await run(300, script) }
        #expect(error?.code == .notAuthorized)
        #expect(script.sent.withLock { $0.count } == 1)
    }

    @Test func anEventThatIsTooLargeIsRejectedAlone() async throws {
        let large = TransportResponse(status: 413, body: Array(#"{"reason":"too large"}"#.utf8))
        let (outcome, script, _) = try await run(4, [large, large, large, Self.stored(2), Self.stored(1)])
        #expect(outcome.accepted == 3)
        #expect(outcome.rejected == [.init(line: 1, reason: "too large")])
        #expect(script.sent.withLock { $0.count } == 5)
    }

    @Test func aFullyRejectedBatchDoesNotStopTheNextOnes() async throws {
        let reasons = (0..<100).map { #"{"index":\#($0),"reason":"no user"}"# }.joined(separator: ",")
        let rejected = TransportResponse(
            status: 400,
            body: Array(#"{"success":false,"reason":"see rejected","rejected":[\#(reasons)]}"#.utf8))
        let (outcome, _, _) = try await run(101, [rejected, Self.stored(1)])
        #expect(outcome.accepted == 1)
        #expect(outcome.rejected.count == 100)
        #expect(outcome.rejected.last?.line == 100)
        #expect(outcome.rejected.last?.reason == "no user")
    }

    @Test func aRejectedEventIsReportedByItsLine() async throws {
        let (outcome, _, _) = try await run(
            3, [Self.stored(2, rejected: #"{"index":1,"code":"missing_user","reason":"no user"}"#)])
        #expect(outcome.rejected == [.init(line: 2, reason: "no user")])
    }

    @Test func requestsWithATokenContainOneUser() async throws {
        let key = try SigningKey.generate(.es256)
        let (_, script, _) = try await run(
            4, (0..<4).map { _ in Self.stored(1) }, key: key, users: ["user-1", "user-2"])
        let sent = script.sent.withLock { $0 }
        #expect(sent.count == 4)
        #expect(sent.allSatisfy { $0.header("Authorization")?.hasPrefix("Bearer ") == true })
    }

    @Test func sendingResumesOnlyForTheSameFileAndKey() throws {
        let folder = TemporaryFolder()
        let url = try #require(URL(string: "http://gateway.example:8787"))
        func checkpoint(
            _ text: String, _ name: String = "events.ndjson", key: String = "wk_1"
        ) -> SendCheckpoint {
            SendCheckpoint(
                name: name, bytes: Array(text.utf8), url: url, writeKey: key,
                environment: ["XDG_STATE_HOME": folder.path])
        }
        checkpoint("a").note(300)
        #expect(checkpoint("a").done == 300)
        #expect(checkpoint("b").done == 0)
        #expect(checkpoint("a", key: "wk_2").done == 0)
        checkpoint("a", "-").note(5)
        #expect(checkpoint("a", "-").done == 0)
        let notes = folder.path + "/countersign/"
        for name in try FileManager.default.contentsOfDirectory(atPath: notes) {
            try Data("-1".utf8).write(to: URL(fileURLWithPath: notes + name))
        }
        #expect(checkpoint("a").done == 0)
        checkpoint("a").finish()
        #expect(checkpoint("a").done == 0)
    }
}
