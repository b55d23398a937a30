import Foundation
import Testing

@testable import Countersign

@Suite(.closing)
struct CountersignClientTests {
    @Test func aQueueThatCannotBeReadIsAnErrorThatAnAppCanName() async throws {
        let bench = try Bench()
        try FileManager.default.createDirectory(
            at: bench.configuration.instanceDirectory.appendingPathComponent("queue.sqlite"),
            withIntermediateDirectories: true)
        let client = try bench.makeClient()
        do throws(CountersignError) {
            _ = try await client.quarantinedEvents()
            Issue.record("there is no queue")
        } catch {
            #expect(error.code == .storageFailed)
            #expect(error.isWorthRetrying)
        }
        do throws(CountersignError) {
            try await client.wipeData()
            Issue.record("there is no queue")
        } catch {
            #expect(error.code == .storageFailed)
        }
    }
}
