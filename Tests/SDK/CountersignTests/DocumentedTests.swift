import Countersign
import CountersignGateway
import CountersignGatewayTesting
import CountersignTesting
import CountersignTransport
import Foundation
import Testing

/// The samples of the article "Testing your integration".
@Suite(.timeLimit(.minutes(5)))
struct DocumentedTests {
    @Test func anOrderSurvivesAnExpiredToken() async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        var configuration = CountersignConfiguration(
            endpoint: try #require(URL(string: "http://127.0.0.1:\(fixture.gateway.port)")),
            writeKey: fixture.writeKey)
        configuration.dataDirectory = URL(fileURLWithPath: fixture.dataDirectory + "/device")
        configuration.flushPolicy = .manual
        let client = try CountersignClient(configuration: configuration)

        client.identify(userID: "user-1", token: try fixture.token(for: "user-1", lifetime: -600))
        client.track("Order Completed", properties: ["total": 42.5])
        #expect(await client.flush().delivered == 0)  // rejected, and kept

        client.setToken(try fixture.token(for: "user-1"))
        #expect(await client.flush().delivered == 2)  // identify and track
        await client.close()
    }

    @Test func ordersWaitWhileTheServerIsDown() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let transport = ScriptedTransport { _ in TransportResponse(status: 503) }
        var configuration = CountersignConfiguration(
            endpoint: try #require(URL(string: "https://collect.example")), writeKey: "wk_test")
        configuration.dataDirectory = folder
        configuration.flushPolicy = .manual
        let client = try CountersignClient(
            configuration: configuration, transport: transport, clock: ManualClock())

        client.track("Order Completed")
        let result = await client.flush()
        #expect(result.delivered == 0)
        #expect(result.queued == 1)
        #expect(transport.requests.count == 1)
        await client.close()
    }
}
