import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignSQLite
import CountersignTesting
import Foundation
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery
@testable import CountersignTransport

/// A sequence of failures between a client and a real gateway. Each recorded event arrives once,
/// and each wait is bounded and visible.
@Suite(.closing, .timeLimit(.minutes(5)))
struct BadDayTests {
    enum Fault: CaseIterable {
        case none, portal, proxy, clockAhead, clockBehind, provider, storeAway, storeFull, otherClient
    }

    /// The network between the device and the gateway.
    private final class FaultyTransport: HTTPTransport {
        let isPortal = Lock(false)
        let isProxyBroken = Lock(false)
        private let transport = makeDefaultTransport()

        func send(_ request: TransportRequest) async throws(HTTPTransportError)
            -> TransportResponse
        {
            if isProxyBroken.withLock({ $0 }) {
                return TransportResponse(
                    status: 503, headers: [("Date", "Sun, 01 Jan 2040 00:00:00 GMT")],
                    body: Array("no upstream".utf8))
            }
            guard isPortal.withLock({ $0 }) else { return try await transport.send(request) }
            return TransportResponse(
                status: 200, headers: [("Content-Type", "text/html")],
                body: Array("<html>Welcome to our hotel</html>".utf8))
        }
    }

    private struct Day {
        let fixture: GatewayFixture
        let transport = FaultyTransport()
        let clock = ManualClock(now: Date())
        let configuration: CountersignConfiguration
        let token: String
        let isProviderDown = Lock(false)

        init() throws {
            fixture = try GatewayFixture(enforcement: .required)
            token = try fixture.token(for: "ada", lifetime: 7 * 86_400)
            var configuration = try fixture.configuration()
            configuration.flushPolicy = .manual
            let tokenOfBob = try fixture.token(for: "bob", lifetime: 7 * 86_400)
            configuration.tokenProvider = { [isProviderDown] request in
                guard request.userID == "bob", !isProviderDown.withLock({ $0 }) else {
                    throw CocoaError(.fileReadUnknown)
                }
                return tokenOfBob
            }
            self.configuration = configuration
        }

        func makeClient() throws -> CountersignClient {
            let client = try CountersignClient(
                configuration: configuration,
                dialect: NativeDialect(
                    endpoint: configuration.endpoint, writeKey: configuration.writeKey, timeout: 30),
                transport: transport, clock: clock, random: { 1 })
            Closing.afterTest { [fixture] in
                await client.close()
                withExtendedLifetime(fixture) {}
            }
            _ = client.setUser("ada", token: token)
            return client
        }

        /// Advances the clock to each sleeper's deadline until `body` returns.
        func passTime<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) async -> Result {
            await withTaskGroup(of: Result?.self) { group in
                group.addTask { await body() }
                group.addTask {
                    while !Task.isCancelled { clock.advance(to: await clock.waitForSleeper()) }
                    return nil
                }
                defer { group.cancelAll() }
                for await result in group {
                    if let result { return result }
                }
                preconditionFailure("the clock runs until it is cancelled")
            }
        }

        func begin(_ fault: Fault, _ client: CountersignClient) async throws {
            let directory = configuration.instanceDirectory
            switch fault {
            case .none, .otherClient: break
            case .portal: transport.isPortal.withLock { $0 = true }
            case .proxy: transport.isProxyBroken.withLock { $0 = true }
            case .clockAhead: clock.setNow(clock.now + 86_400)
            case .clockBehind: clock.setNow(clock.now - 2 * 86_400)
            case .provider:
                isProviderDown.withLock { $0 = true }
                _ = client.setUser("bob", token: nil)
            case .storeAway:
                // A file at the directory's path prevents all writes.
                try await client.pipeline.whileNothingIsWritten {
                    try FileManager.default.moveItem(
                        at: directory, to: directory.appendingPathExtension("aside"))
                    try Data().write(to: directory)
                }
            case .storeFull:
                try await client.pipeline.storage.perform { queue in
                    try queue.connection.execute("PRAGMA max_page_count = 1")
                }
            }
        }

        func end(_ fault: Fault, _ client: CountersignClient) async throws {
            let directory = configuration.instanceDirectory
            switch fault {
            case .none, .otherClient: break
            case .portal: transport.isPortal.withLock { $0 = false }
            case .proxy: transport.isProxyBroken.withLock { $0 = false }
            // The clock stays ahead. The next jump goes in the other direction.
            case .clockAhead: break
            case .clockBehind: clock.setNow(clock.now + 86_400)
            case .provider: isProviderDown.withLock { $0 = false }
            case .storeAway:
                try await client.pipeline.whileNothingIsWritten {
                    try FileManager.default.removeItem(at: directory)
                    try FileManager.default.moveItem(
                        at: directory.appendingPathExtension("aside"), to: directory)
                }
            case .storeFull:
                try await client.pipeline.storage.perform { queue in
                    try queue.connection.execute("PRAGMA max_page_count = 1000000")
                }
            }
        }
    }

    @Test func everyEventArrivesOnceThroughEveryFaultWithBoundedWaits() async throws {
        let day = try Day()
        let client = try day.makeClient()
        var accepted: [String] = []
        for fault in Fault.allCases {
            try await day.begin(fault, client)
            for number in 0..<12 {
                let name = "\(fault) \(number)"
                if number.isMultiple(of: 3) {
                    client.track(name)
                    accepted.append(name)
                } else if await day.passTime({ (try? await client.record(name)) != nil }) {
                    accepted.append(name)
                } else {
                    #expect(fault == .storeAway, "\(name)")
                }
            }
            for _ in 0..<3 where await !client.flush().isComplete {
                let snapshot = await client.snapshot()
                let waits =
                    [snapshot.nextAttemptIn].compactMap { $0 } + snapshot.parked.compactMap(\.nextAttemptIn)
                #expect(!waits.isEmpty || snapshot.lastError != nil, "\(fault): \(snapshot)")
                #expect(waits.allSatisfy { $0 <= 3_600 }, "\(fault): \(waits)")
                day.clock.advance(by: 3_600)
            }
            try await day.end(fault, client)
            if fault == .storeAway {
                // Does not flush, because recording must recover without a call of the app.
                #expect(await day.passTime { (try? await client.record("back")) != nil })
                accepted.append("back")
            }
            if fault == .otherClient {
                let other = try day.makeClient()
                try await other.record("other")
                accepted.append("other")
                async let first = client.flush()
                async let second = other.flush()
                _ = await (first, second)
                day.clock.advance(by: 3_600)
                await other.flush()
                await other.close()
            }
            let result = await client.flush()
            let snapshot = await client.snapshot()
            #expect(result.isComplete, "after \(fault): \(result) \(snapshot)")
            #expect(abs(snapshot.clockOffset) < 3 * 86_400, "after \(fault)")
            if fault == .provider { _ = client.setUser("ada", token: day.token) }
        }
        let snapshot = await client.snapshot()
        #expect(snapshot.quarantined == 0 && snapshot.dropped == 0 && snapshot.unsaved == 0)
        await client.close()

        let stored = try day.fixture.rows("name", where: "type = 'track'")
            .compactMap(\.[0])
        #expect(stored.count == Set(stored).count)
        #expect(Set(stored) == Set(accepted))
    }
}
