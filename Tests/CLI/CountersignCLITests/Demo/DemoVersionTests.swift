import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import Testing

@testable import CountersignCLI

/// The app versions of the demo's devices.
@Suite(.timeLimit(.minutes(5)))
struct DemoVersionTests {
    @Test func thePreviewNamesTheVersionsOfTheDemo() async throws {
        let fixture = try GatewayFixture(enforcement: .optional)
        let folder = TemporaryFolder()
        let plan = DemoPlan(replay: ShopSample.replay(users: 2, eventsPerUser: 5), devices: 3)
        #expect(Set(plan.devices.map(\.appVersion)) == ["1.9", "2.0"])
        var senders: [DemoDevice] = []
        for device in plan.devices {
            // Devices with other roles delay a request until its token has expired.
            let forging = DemoPlan.Device(
                name: device.name, role: .forged, appVersion: device.appVersion, rows: device.rows)
            let sender = try DemoDevice(
                plan: forging,
                endpoint: try #require(URL(string: "http://127.0.0.1:\(fixture.gateway.port)")),
                writeKey: fixture.writeKey, key: try SigningKey.generate(.es256),
                folder: URL(fileURLWithPath: folder.path))
            try await sender.record(seconds: 0.000_001)
            try await sender.drain(until: Date())
            await sender.close()
            senders.append(sender)
        }
        fixture.gateway.analytics.flush()
        let token = try fixture.apps.apiTokens.create(name: "test", scopes: ["admin"]).text
        let io = RecordedIO(environment: ["COUNTERSIGN_TOKEN": token])
        let server = "http://127.0.0.1:\(fixture.gateway.port)"
        #expect(await io.run("enforcement", "preview", "shop", "--server", server) == .done, "\(io.talk)")
        #expect(
            io.output.contains("app version 1.9: ") && io.output.contains("app version 2.0: "), "\(io.output)"
        )
        #expect(!io.output.contains("unknown"), "\(io.output)")
        // The gateway accepts forged tokens, because enforcement is optional.
        let run = DemoRun(
            plan: plan, folder: URL(fileURLWithPath: folder.path), executable: "", destination: nil, io: io.io
        )
        #expect(try !run.check(senders))
    }
}
