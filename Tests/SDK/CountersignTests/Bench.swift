import CountersignTesting
import Foundation
import TestSupport

@testable import Countersign
@testable import CountersignDelivery

/// A client in its own directory, with a scripted server and a manual clock.
struct Bench {
    let folder = TemporaryFolder()
    var directory: URL { folder.url }
    let clock = ManualClock()
    let gateway = FakeGateway()
    let transport: ScriptedTransport
    var configuration: CountersignConfiguration

    init() throws {
        let gateway = gateway
        transport = ScriptedTransport { try gateway.answer($0) }
        guard let endpoint = URL(string: "https://gateway.example") else { throw CocoaError(.fileNoSuchFile) }
        configuration = CountersignConfiguration(endpoint: endpoint, writeKey: "wk_test")
        configuration.dataDirectory = folder.url
        configuration.flushPolicy = .manual
    }

    /// A bench and a client on it.
    static func open(
        _ configure: (inout CountersignConfiguration) -> Void = { _ in }
    ) throws -> (bench: Bench, client: CountersignClient) {
        var bench = try Bench()
        configure(&bench.configuration)
        return (bench, try bench.makeClient())
    }

    /// Jitter is off, so each wait has its maximum length. The client is closed after the test.
    func makeClient() throws -> CountersignClient {
        let client = try CountersignClient(
            configuration: configuration,
            dialect: NativeDialect(
                endpoint: configuration.endpoint, writeKey: configuration.writeKey,
                timeout: configuration.requestTimeout, context: configuration.context),
            transport: transport, clock: clock, random: { 1 })
        Closing.afterTest { [folder] in
            await client.close()
            withExtendedLifetime(folder) {}
        }
        return client
    }

    /// Opens a connection of its own to the queue file.
    func openQueue() throws -> EventQueue {
        try EventQueue(
            path: configuration.instanceDirectory.appendingPathComponent("queue.sqlite").path,
            limits: QueueLimits(), clock: clock)
    }
}

extension DeliveryPipeline {
    /// Runs `body` while nothing is written, for example to replace the directory by a file.
    /// A concurrent write would create the missing directory again.
    func whileNothingIsWritten(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { continuation in
            recorder.writer.async { [storage] in
                let isDone = Handshake()
                storage.submit { _ in
                    continuation.resume(with: Result { try body() })
                    isDone.signal()
                }
                isDone.block()
            }
        }
    }
}
