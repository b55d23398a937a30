import CountersignTesting
import Foundation
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// Makes clients that share a directory, a scripted server and a manual clock.
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
            configuration: configuration, dialect: dialect, transport: transport, clock: clock,
            random: { 1 })
        Closing.afterTest { [folder] in
            await client.close()
            withExtendedLifetime(folder) {}
        }
        return client
    }

    /// Opens a client, identifies the user `ada`, and delivers that event.
    static func signedIn() async throws -> (bench: Bench, client: CountersignClient) {
        let (bench, client) = try open()
        client.identify(userID: "ada", token: "a.a.a")
        #expect(await client.flush().isComplete)
        return (bench, client)
    }

    var dialect: NativeDialect {
        NativeDialect(
            endpoint: configuration.endpoint, writeKey: configuration.writeKey,
            timeout: configuration.requestTimeout, context: configuration.context)
    }

    var queueFile: URL { configuration.instanceDirectory.appendingPathComponent("queue.sqlite") }

    /// Opens a connection of its own to the queue file.
    func openQueue(_ limits: QueueLimits = QueueLimits()) throws -> EventQueue {
        try FileManager.default.createDirectory(
            at: configuration.instanceDirectory, withIntermediateDirectories: true)
        return try EventQueue(path: queueFile.path, limits: limits, clock: clock)
    }

    func makeStorage(
        _ limits: QueueLimits = QueueLimits(), canOpen: @escaping @Sendable (String) -> Bool = { _ in true }
    ) -> Storage {
        Storage(
            directory: configuration.instanceDirectory, limits: limits, clock: clock, log: nil,
            canOpen: canOpen)
    }
}

extension DispatchQueue {
    /// Blocks this queue until the returned gate is signalled.
    func hold() async -> Handshake {
        let (isHeld, gate) = (Handshake(), Handshake())
        async {
            isHeld.signal()
            gate.block()
        }
        await isHeld.wait()
        return gate
    }
}

extension Storage {
    /// Blocks the storage thread, like a process that locks the queue file, until the returned gate is signalled.
    func hold() async -> Handshake {
        let (isHeld, gate) = (Handshake(), Handshake())
        submit { _ in
            isHeld.signal()
            gate.block()
        }
        await isHeld.wait()
        return gate
    }
}

extension DeliveryPipeline {
    /// Runs `body` while no event is written, for example to replace the directory by a file.
    /// A concurrent write would create the missing directory again.
    func whileNothingIsWritten(_ body: @escaping @Sendable () throws -> Void) async throws {
        let gate = await recorder.writer.hold()
        defer { gate.signal() }
        try await storage.run { _ in try body() }
    }

    /// Runs `body` while the storage thread is blocked, so that events stay in the write-ahead log.
    func whileStorageIsBusy<Result>(_ body: () async throws -> Result) async throws -> Result {
        let gate = await storage.hold()
        defer { gate.signal() }
        return try await body()
    }
}
