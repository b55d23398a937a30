package import CountersignBloomreach
package import CountersignCore
package import CountersignDelivery
package import CountersignTesting
package import CountersignTransport
package import Foundation
import TestSupport

/// A client with its own directory, a manual clock and a scripted server. Files are removed after the test.
package final class BloomreachDevice: Sendable {
    package static let success = TransportResponse(status: 200, body: Array(#"{"success":true}"#.utf8))

    package let client: BloomreachClient
    package let clock: ManualClock
    package let server: ScriptedTransport
    package let lines: Lock<[String]>
    private let directory: URL

    package init(
        directory: URL? = nil, clock: ManualClock = ManualClock(),
        server: ScriptedTransport = ScriptedTransport { _ in BloomreachDevice.success },
        _ configure: (inout BloomreachConfiguration) throws -> Void = { _ in }
    ) throws {
        self.directory =
            directory
            ?? FileManager.default.temporaryDirectory.appendingPathComponent(
                "bloomreach-" + UUID().uuidString)
        self.clock = clock
        self.server = server
        let lines = Lock<[String]>([])
        self.lines = lines
        var configuration = BloomreachConfiguration(project: try Self.project())
        configuration.dataDirectory = self.directory
        configuration.flushPolicy = .manual
        configuration.context.parts = []
        configuration.log = CountersignLog(isEnabled: { $0 > .debug }) { _, line, _ in
            lines.withLock { $0.append(line) }
        }
        try configure(&configuration)
        client = try BloomreachClient(configuration: configuration, transport: server, clock: clock)
        Closing.afterTest { [client, directory = self.directory] in
            await client.close()
            try? FileManager.default.removeItem(at: directory)
        }
    }

    package static func project(_ token: String = "0aef3a96-3804", key: String = "key") throws
        -> BloomreachProject
    {
        try BloomreachProject(token: token, apiKey: key, baseURL: "https://api.example.com/")
    }

    package var requests: [TransportRequest] { server.requests }

    /// Closes the client and opens another over the same directory.
    package func restarted(
        _ configure: (inout BloomreachConfiguration) throws -> Void = { _ in }
    ) async throws -> BloomreachDevice {
        await client.close()
        return try BloomreachDevice(directory: directory, clock: clock, server: server, configure)
    }
}

extension BloomreachConfiguration {
    package mutating func authorize(_ provider: CustomerTokenProvider?) {
        advancedAuthEnabled = true
        authorizationProvider = provider
    }
}

/// A provider that returns the result of a closure, and records customer changes.
package final class SampleProvider: AuthorizationProviderType, CustomerObserving, @unchecked Sendable {
    // `@unchecked Sendable`: the closure is `Sendable`, and locks guard the recorded values.
    private let token: @Sendable () -> String?
    package let calls = Lock(0)
    package let customers = Lock<[[String: String]]>([])

    package init(_ token: @escaping @Sendable () -> String?) {
        self.token = token
    }

    package convenience init() {
        self.init { "a.b.c" }
    }

    /// Signals `entered` at each call, and returns after `left` was signalled.
    package static func held(_ entered: Handshake, _ left: Handshake) -> SampleProvider {
        SampleProvider {
            entered.signal()
            left.block()
            return "a.b.c"
        }
    }

    package func getAuthorizationToken() -> String? {
        calls.withLock { $0 += 1 }
        return token()
    }

    package func customerChanged(to customerIDs: [String: String]) {
        customers.withLock { $0.append(customerIDs) }
    }
}

extension TransportRequest {
    package var json: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:]
    }

    /// Request line and header fields in order.
    package var head: [String] {
        ["POST \(url.path)\(url.query.map { "?\($0)" } ?? "")"] + headers.map { "\($0.name): \($0.value)" }
    }

    package var text: String { String(decoding: body, as: UTF8.self) }
}

/// Returns the code of the `CountersignError` that `body` throws; nil for another error or no error.
package func code(_ body: () async throws -> Void) async -> CountersignError.Code? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? CountersignError)?.code
    }
}
