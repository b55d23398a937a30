import Countersign
import CountersignCore
import CountersignTesting
import Foundation
import Testing

@testable import ExponeaCompat

/// On an instance of its own, with a server in memory.
@Suite(.timeLimit(.minutes(5)))
struct ConfigurationTests {
    @Test func whatIsTrackedBeforeTheFirstUnlockIsStoredAfterIt() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-exponea-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        // There is something, and it cannot be read.
        let customer = folder.appendingPathComponent("exponea/customer.json")
        let clock = ManualClock()
        let exponea = Exponea()
        exponea.setTestSurroundings(
            dataDirectory: folder, transport: ScriptedTransport { _ in TransportResponse(status: 200) },
            clock: clock)
        let map: [String: Any] = [
            "projectToken": "shop", "authorizationToken": "key", "baseUrl": "https://api.example",
            "flushMode": "MANUAL", "instanceName": "exponea",
        ]
        try FileManager.default.createDirectory(at: customer, withIntermediateDirectories: true)
        #expect(try exponea.configure(map: map))
        #expect(!exponea.isConfigured)
        let (done, finish) = AsyncStream.makeStream(of: Void.self)
        exponea.perform { _ in finish.yield() }
        var instant = await clock.waitForSleeper()
        clock.advance(to: instant)
        instant = await clock.waitForSleeper()
        #expect(!exponea.isConfigured)
        try FileManager.default.removeItem(at: customer)
        clock.advance(to: instant)
        for await _ in done { break }
        #expect(exponea.isConfigured)
        await exponea.close()
    }

    @Test func datesAreSecondsWhoeverMadeThem() {
        let date = Date(timeIntervalSince1970: 1_750_000_000.5)
        let object = NSDate(timeIntervalSince1970: 1_750_000_000.5)
        let values: [String: Any] = [
            "date": date, "object": object, "list": [object, ["deep": object]] as [Any],
            "n": NSNumber(value: 5),
        ]
        let seconds = JSONValue.number(1_750_000_000.5)
        #expect(
            values.jsonValue
                == [
                    "date": seconds, "object": seconds, "list": [seconds, ["deep": seconds]],
                    "n": .integer(5),
                ])
    }
}
