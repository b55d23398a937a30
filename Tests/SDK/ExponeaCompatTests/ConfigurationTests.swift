import CountersignBloomreach
import CountersignCore
import CountersignTesting
import CountersignTransport
import Foundation
import Testing

@testable import ExponeaCompat

/// An instance that is not shared, with an in-memory server.
@Suite(.timeLimit(.minutes(5)))
struct ConfigurationTests {
    private let folder = TemporaryFolder()
    private let other = TemporaryFolder()

    @Test func callsBeforeTheFirstUnlockRunAfterTheUnlock() async throws {
        // The customer file exists but cannot be read, as before the first unlock.
        let customer = folder.url.appendingPathComponent("exponea/customer.json")
        let (clock, exponea) = (ManualClock(), Exponea())
        exponea.setTestDependencies(
            dataDirectory: folder.url, transport: ScriptedTransport { _ in TransportResponse(status: 200) },
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

    @Test func aConfigureThatDoesNotStartTheSDKKeepsTheFlushingMode() async {
        let exponea = Exponea()
        exponea.setTestDependencies(
            dataDirectory: folder.url, transport: ScriptedTransport { _ in TransportResponse(status: 200) },
            clock: ManualClock())
        func configure(_ project: String, _ mode: FlushingMode) {
            exponea.configure(
                Exponea.ProjectSettings(
                    projectToken: project, authorization: .token("key"), baseUrl: "https://api.example"),
                pushNotificationTracking: .disabled, flushingSetup: Exponea.FlushingSetup(mode: mode))
        }
        configure("not valid", .automatic)
        #expect(exponea.flushingMode == .immediate)
        configure("shop", .manual)
        #expect(exponea.flushingMode == .manual)
        configure("shop", .immediate)
        #expect(exponea.flushingMode == .manual)
        await exponea.close()
    }

    @Test func allDatesBecomeSeconds() {
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

    private func client(in folder: TemporaryFolder) throws -> BloomreachClient {
        var configuration = BloomreachConfiguration(
            project: try BloomreachProject(token: "shop", apiKey: "key", baseURL: "https://api.example"))
        configuration.dataDirectory = folder.url
        configuration.flushPolicy = .manual
        configuration.log = nil
        return try BloomreachClient(
            configuration: configuration,
            transport: ScriptedTransport { _ in TransportResponse(status: 200) },
            clock: ManualClock())
    }

    /// Otherwise, all customers would share an ID such as `<null>`.
    @Test func customerIDsWithoutATextAreLeftOut() async throws {
        let (exponea, customers) = (Exponea(), try client(in: folder))
        #expect(exponea.start(customers))
        let given: [String: any JSONConvertible] = [
            "registered": NSNull(), "null": JSONValue.null, "list": [1] as [Int],
            "object": ["a": 1] as [String: Int], "number": Double.nan, "text": "ada", "count": 7,
            "ratio": 0.5, "flag": true,
        ]
        exponea.identifyCustomer(customerIds: given)
        var ids = customers.customerIDs
        ids["cookie"] = nil
        #expect(ids == ["text": "ada", "count": "7", "ratio": "0.5", "flag": "true"])
        await exponea.close()
    }

    /// Two threads may configure at the same time.
    @Test func aSecondClientDoesNotReplaceTheFirst() async throws {
        let (first, second) = (try client(in: folder), try client(in: other))
        let exponea = Exponea()
        #expect(exponea.start(first))
        #expect(!exponea.start(second))
        #expect(exponea.client === first)
        await second.close()
        await exponea.close()
    }

    /// In another order, an event after `identifyCustomer` could belong to the former customer.
    @Test func aCallDuringTheStartRunsAfterTheWaitingCalls() async throws {
        let (exponea, order) = (Exponea(), Lock([Int]()))
        exponea.perform { [unowned exponea] _ in
            // More calls may wait during the start than before it.
            for _ in 0..<1_000 { exponea.perform { _ in } }
            exponea.perform { _ in order.withLock { $0.append(3) } }
            order.withLock { $0.append(1) }
        }
        exponea.perform { _ in order.withLock { $0.append(2) } }
        #expect(exponea.start(try client(in: folder)))
        exponea.perform { _ in order.withLock { $0.append(4) } }
        #expect(order.withLock { $0 } == [1, 2, 3, 4])
        await exponea.close()
    }

    /// Two threads may stop at the same time, while another configures again.
    @Test func stoppingReturnsAClientOnlyOnce() async throws {
        let (first, second) = (try client(in: folder), try client(in: other))
        let exponea = Exponea()
        #expect(exponea.start(first))
        var inner: BloomreachClient?
        let outer = exponea.stop { _ in
            inner = exponea.stop { _ in }
            #expect(exponea.start(second))
        }
        #expect(inner === first)
        #expect(outer == nil)
        #expect(exponea.client === second)
        await first.close()
        await exponea.close()
    }

    private final class LineLogger: Logger, @unchecked Sendable {
        // `@unchecked Sendable`: the lines have a lock.
        let lines = Lock<[String]>([])
        override func logMessage(_ message: String) { lines.withLock { $0.append(message) } }
    }

    @Test func aLoggerFiltersByItsLevel() {
        for (level, expected) in [
            (LogLevel.none, []), (.error, ["e"]), (.warning, ["e", "w"]), (.verbose, ["e", "w", "v"]),
        ] as [(LogLevel, [String])] {
            let logger = LineLogger()
            logger.logLevel = level
            for (level, text) in [
                (.none, "n"), (.error, "e"), (.warning, "w"), (.verbose, "v"),
            ] as [(LogLevel, String)] { logger.log(level, message: text) }
            #expect(logger.lines.withLock { $0.map { $0.suffix(1) } } == expected.map { $0.suffix(1) })
        }
    }
}
