import CountersignGatewayTesting
import CountersignTesting
import Testing

@testable import CountersignGateway

/// Whatever a gateway notes with a time has it from the clock that the gateway was given.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct GatewayClockTests {
    @Test(arguments: TestTransport.allCases)
    func whatIsNotedHasTheTimeOfTheGatewaysClock(_ transport: TestTransport) throws {
        let bench = try AdminBench(transport)
        let token = try bench.token("admin")
        bench.clock.advance(by: 10 * 86_400)
        func time(_ name: String, of path: String) throws -> Int64? {
            let items = try bench.ask("GET", path, nil, token).json["items"] as? [[String: Any]]
            return (items?.first?[name] as? Int).map(Int64.init)
        }

        let made = try bench.ask("POST", "apps", #"{"id":"later"}"#, token)
        #expect((made.json["app"] as? [String: Any])?["created_ms"] as? Int == Int(bench.now))
        #expect(try time("at_ms", of: "audit?app=later") == bench.now)
        let sent = try bench.client().post(
            #"{"batch":[{"type":"track","event":"A","messageId":"m-1","anonymousId":"d-1"}]}"#,
            headers: ["X-Write-Key": bench.writeKey])
        #expect(sent?.status == 200)
        #expect(try time("received_ms", of: "apps/shop/events") == bench.now)
    }
}
