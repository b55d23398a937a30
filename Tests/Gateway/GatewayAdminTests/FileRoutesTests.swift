import CountersignGatewayTesting
import CountersignTesting
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

/// The routes of an app's hourly event files.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct FileRoutesTests {
    @Test func aSecondPauseLeavesTheFirstUnchanged() throws {
        let bench = try AdminBench()
        let (first, second) = (try bench.token("write"), try bench.token("admin"))
        func send(_ action: String, _ headers: [String: String]) throws -> [String: Any] {
            let answer = try bench.ask("POST", "apps/shop/files/\(action)", nil, headers)
            #expect(answer.status == 200, "\(answer.body)")
            return answer.json
        }
        func revision() throws -> Int64 {
            try bench.apps.setting(FileSettings.self, of: "shop").revision
        }
        let began = bench.now
        let paused = try send("pause", first)
        #expect(paused["state"] as? String == "paused")
        bench.clock.advance(by: 60)
        let again = try send("pause", second)
        let pauses = try [paused, again].map { try #require($0["paused"] as? [String: Any]) }
        #expect(pauses.map { $0["at_ms"] as? Int64 } == [began, began])
        #expect(pauses[0]["by"] as? String == pauses[1]["by"] as? String)
        let before = try revision()
        let resumed = try send("resume", second)
        #expect(resumed["paused"] is [String: Any] == false && resumed["state"] as? String == "active")
        #expect(try revision() > before)
    }
}
