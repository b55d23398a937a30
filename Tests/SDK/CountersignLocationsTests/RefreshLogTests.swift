import CountersignDelivery
import CountersignTesting
import CountersignTransport
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import CountersignLocations

/// Refreshes of access tokens in the log at its default level, warnings.
@Suite(.closing, .timeLimit(.minutes(5)))
struct RefreshLogTests {
    private func warnings(_ bench: AccessTokenBench) -> [String] {
        bench.lines.withLock { $0.filter { $0.hasPrefix("warning ") } }
    }

    @Test(arguments: [
        (TransportResponse.json(400, #"{"error":"invalid_grant"}"#), "sign the user in again"),
        (.json(403, ""), "sign the user in again"), (.json(200, "{}"), "responseMapping"),
        (.json(503, ""), "network"),
    ])
    func aFailedRefreshLogsOneWarningWithTheRemedy(answer: TransportResponse, remedy: String) async {
        let bench = AccessTokenBench()
        bench.server.override { _ in answer }
        let tokens = bench.make()
        for _ in 0..<3 {
            _ = await tokens.authorize(rejected: 1)
            bench.clock.advance(by: 300)
        }
        let refreshes = warnings(bench).filter { $0.contains("was not refreshed") }
        #expect(refreshes.count == 1)
        #expect(refreshes.first?.contains(remedy) == true)
    }

    @Test func anErrorThatRepeatsATokenIsLoggedWithoutTheToken() async {
        let bench = AccessTokenBench()
        bench.server.override { _ in .json(400, #"{"error":"secretrefresh","code":"secretaccess"}"#) }
        let tokens = bench.make(bench.login("secretaccess", "secretrefresh"))
        _ = await tokens.authorize(rejected: 1)
        #expect(!warnings(bench).isEmpty)
        #expect(!bench.lines.withLock { $0.joined() }.contains("secret"))
    }

    @Test func aSuccessfulRefreshLogsNoWarning() async {
        let bench = AccessTokenBench()
        let tokens = bench.make()
        #expect(await tokens.authorize(rejected: 1).token == "A1")
        #expect(warnings(bench).isEmpty)
    }
}
