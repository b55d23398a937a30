import CountersignTesting
import Foundation

@testable import Countersign
@testable import CountersignDelivery

/// A client on a directory of its own, a scripted server and a manual clock.
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

    /// Jitter is off: each wait is as long as it may be. The client is closed after the test.
    func makeClient() throws -> CountersignClient {
        let client = try CountersignClient(
            configuration: configuration,
            dialect: NativeDialect(
                endpoint: configuration.endpoint, writeKey: configuration.writeKey,
                timeout: configuration.requestTimeout),
            transport: transport, clock: clock, random: { 1 })
        Closing.afterTest { [folder] in
            await client.close()
            withExtendedLifetime(folder) {}
        }
        return client
    }

    /// The queue file of a client that has none open, or of one that may be looked at beside it.
    func openQueue() throws -> EventQueue {
        try EventQueue(
            path: configuration.instanceDirectory.appendingPathComponent("queue.sqlite").path,
            limits: QueueLimits(), clock: clock)
    }
}

extension DeliveryPipeline {
    /// Runs `body` while nothing is written, such as to put something else in the place of the directory: whoever writes makes
    /// that anew where it is missing.
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

extension SignedToken {
    /// A token that only looks like one, with this `exp`.
    static func fake(subject: String, expiresAt: Int, serial: Int = 0) -> String {
        func part(_ json: String) -> String {
            Data(json.utf8).base64EncodedString().replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
        }
        return part(#"{"alg":"RS256","typ":"JWT"}"#) + "."
            + part(#"{"sub":"\#(subject)","exp":\#(expiresAt),"jti":"\#(serial)"}"#) + ".c2ln"
    }
}
