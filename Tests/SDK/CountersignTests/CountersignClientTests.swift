import Foundation
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

@Suite(.closing)
struct CountersignClientTests {
    @Test func anUnreadableQueueThrowsStorageFailed() async throws {
        let bench = try Bench()
        try FileManager.default.createDirectory(at: bench.queueFile, withIntermediateDirectories: true)
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

    @Test func identifyingTheCurrentUserWithoutChangesIsNotAnEvent() async throws {
        let (bench, client) = try Bench.open()
        func identify(_ traits: JSONObject = [:]) async -> Result<String?, CountersignError> {
            await withCheckedContinuation { continuation in
                client.identify(userID: "ada", token: nil, traits: traits) {
                    continuation.resume(returning: $0)
                }
            }
        }
        #expect(try await identify().get() != nil)
        #expect(try await identify().get() == nil)
        #expect(try await identify(["plan": "tea"]).get() != nil)
        #expect(await client.snapshot().recorded == 2)
        withExtendedLifetime(bench) {}
    }

    @Test func messagesBelowTheLevelAreNeitherLoggedNorFormatted() {
        let lines = Lock<[String]>([])
        let log = CountersignLog(isEnabled: { $0 >= .warning }) { _, line, _ in
            lines.withLock { $0.append(line) }
        }
        func values(_ name: String) -> [String: String] {
            lines.withLock { $0.append("values of \(name)") }
            return [:]
        }
        log.write(.info, "disabled", [:])
        log.write(.warning, "written", [:])
        log(.debug, "disabled", values("debug"))
        log(.warning, "called", values("warning"))
        #expect(lines.withLock { $0 } == ["written", "values of warning", "called"])
    }
}
