import CountersignCore
import CountersignDelivery
import CountersignTesting
import Foundation
import TestSupport
import Testing

@testable import CountersignLocations

/// Invalid token responses over a real socket. The client keeps its tokens and logs no secret.
@Suite(.timeLimit(.minutes(5)))
struct HostileTokenServerTests {
    private static let secrets = ["secret-access", "secret-refresh"]
    private let folder = TemporaryFolder()

    enum Answer: String, CaseIterable, Sendable {
        case html, empty, array, nothing, hangs, huge, endlessHeader, notHTTP, cut, wrongLength, redirect,
            deep
        case null, number, emptyToken, injection, error200, echo, chunkedGarbage

        private func http(_ status: String, _ body: String, _ headers: String = "") -> String {
            "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)"
        }

        var bytes: String? {
            switch self {
            case .html: http("200 OK", "<html><form>Log in</form></html>", "Content-Type: text/html\r\n")
            case .empty: http("200 OK", "")
            case .array: http("200 OK", #"["access_token","A"]"#)
            case .nothing: nil
            case .hangs: ""
            case .huge:
                http(
                    "200 OK",
                    #"{"access_token":"A","x":""#
                        + String(repeating: String(repeating: "x", count: 3_000), count: 10_000)
                        + #""}"#)
            case .endlessHeader: "HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 300_000)
            case .notHTTP: "SSH-2.0-OpenSSH_9.2\r\n"
            case .cut: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"access_token\":\"A\""
            case .wrongLength: "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{\"access_token\":\"A\"}"
            case .redirect: http("307 Temporary Redirect", "", "Location: /elsewhere\r\n")
            case .deep:
                http(
                    "200 OK",
                    String(repeating: #"{"a":"#, count: 100_000) + "1"
                        + String(repeating: "}", count: 100_000))
            case .null: http("200 OK", "null")
            case .number: http("200 OK", #"{"access_token":17}"#)
            case .emptyToken: http("200 OK", #"{"access_token":"","refresh_token":""}"#)
            case .injection: http("200 OK", #"{"access_token":"A\r\nX-Evil: 1"}"#)
            case .error200: http("200 OK", #"{"error":"temporarily_unavailable"}"#)
            case .echo: http("500 Oops", #"{"error":"secret-refresh","error_description":"secret-access"}"#)
            case .chunkedGarbage: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"
            }
        }
    }

    @Test(arguments: Answer.allCases)
    func theTokenPairSurvivesHostileResponses(_ answer: Answer) async throws {
        let isGood = Lock(false)
        let server = try RawServer { head in
            func http(_ status: String, _ body: String) -> String {
                "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            }
            if head.hasPrefix("POST /tokens") {
                guard isGood.withLock({ $0 }) else { return answer.bytes }
                return http("200 OK", #"{"access_token":"fresh","refresh_token":"next"}"#)
            }
            return head.contains("Bearer fresh") ? http("200 OK", "") : http("401 Unauthorized", "")
        }
        defer { server.stop() }
        let log = Lock("")
        func make(timeout: TimeInterval) throws -> LocationClient {
            var configuration = LocationConfiguration()
            configuration.http.url = "http://127.0.0.1:\(server.port)/locations"
            configuration.http.autoSync = false
            configuration.http.timeout = timeout
            configuration.authorization.accessToken = Self.secrets[0]
            configuration.authorization.refreshToken = Self.secrets[1]
            configuration.authorization.refreshUrl = "http://127.0.0.1:\(server.port)/tokens"
            configuration.authorization.refreshPayload = ["refresh_token": "{refreshToken}"]
            configuration.dataDirectory = folder.url
            configuration.onAuthorization = { event in log.withLock { $0 += "\(event)\n" } }
            configuration.log = CountersignLog(isEnabled: { _ in true }) { _, text, values in
                log.withLock { $0 += "\(text) \(values)\n" }
            }
            // The clock does not advance, so that any further request would be a loop.
            return try LocationClient(configuration: configuration, clock: ManualClock())
        }

        // Refreshes keep the first limit. Uploads get one that they do not reach on a loaded machine.
        let first = try make(timeout: [.hangs, .cut].contains(answer) ? 10 : 60)
        try await first.update { $0.http.timeout = 60 }
        try await first.record(Location(latitude: 1, longitude: 2, timestamp: Date()))
        for _ in 0..<5 {
            let error = await #expect(throws: CountersignError.self) { try await first.sync() }
            log.withLock { $0 += "\(error.map { "\($0)" } ?? "")\n" }
        }
        #expect(server.requests.count { $0.hasPrefix("POST /tokens") } == 1)
        #expect(server.requests.contains { $0.contains("/elsewhere") } == false)
        #expect(try await first.count() == 1)
        await first.callbacksDelivered()
        await first.close()
        let text = log.withLock { $0 }
        #expect(text.contains("failure"))
        for secret in Self.secrets { #expect(text.contains(secret) == false, "\(text)") }

        // The server recovers, and a new client starts with the stored state.
        isGood.withLock { $0 = true }
        let second = try make(timeout: 60)
        try await second.sync()
        #expect(try await second.count() == 0)
        await second.close()
    }
}
