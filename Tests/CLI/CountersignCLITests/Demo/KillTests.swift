import Foundation
import Testing

/// `scripts/kill-test.sh` kills the gateway with SIGKILL several times while devices send events.
@Suite(.timeLimit(.minutes(5)))
struct KillTests {
    @Test func eachEventIsStoredExactlyOnceAlthoughTheGatewayIsKilled() async throws {
        let folder = TemporaryFolder()
        let shell = Shell(folder: folder.path, environment: ["COUNTERSIGN": Program.path])
        let result = try await shell.run("'\(Package.folder.path)/scripts/kill-test.sh' --devices 3")
        #expect(result.status == 0, "\(result.output)\(result.talk)")
        #expect(result.output.contains("ok     300 of 300 events are in the database exactly once"))
        #expect(result.output.contains("the gateway was killed 3 times"))
    }
}
