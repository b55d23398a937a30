import CountersignBloomreach
import CountersignCore
import CountersignDelivery
import CountersignTesting
import CountersignTransport
import Foundation

/// A client with its own directory, a manual clock and a scripted server. Files are removed after the test.
final class BloomreachDevice: Sendable {
    static let success = TransportResponse(status: 200, body: Array(#"{"success":true}"#.utf8))

    let client: BloomreachClient
    let clock: ManualClock
    let server: ScriptedTransport
    let lines: Lock<[String]>
    private let directory: URL

    init(
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

    static func project(_ token: String = "0aef3a96-3804", key: String = "key") throws -> BloomreachProject {
        try BloomreachProject(token: token, apiKey: key, baseURL: "https://api.example.com/")
    }

    var requests: [TransportRequest] { server.requests }

    /// Closes the client and opens another over the same directory.
    func restarted(
        _ configure: (inout BloomreachConfiguration) throws -> Void = { _ in }
    ) async throws -> BloomreachDevice {
        await client.close()
        return try BloomreachDevice(directory: directory, clock: clock, server: server, configure)
    }
}

/// A provider that returns the result of a closure, and records customer changes.
final class SampleProvider: AuthorizationProviderType, CustomerObserving, @unchecked Sendable {
    // `@unchecked Sendable`: the closure is `Sendable`, and locks guard the recorded values.
    private let token: @Sendable () -> String?
    let calls = Lock(0)
    let customers = Lock<[[String: String]]>([])

    init(_ token: @escaping @Sendable () -> String?) {
        self.token = token
    }

    convenience init() {
        self.init { "a.b.c" }
    }

    func getAuthorizationToken() -> String? {
        calls.withLock { $0 += 1 }
        return token()
    }

    func customerChanged(to customerIDs: [String: String]) {
        customers.withLock { $0.append(customerIDs) }
    }
}

extension TransportRequest {
    var json: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:]
    }

    /// Request line and header fields in order.
    var head: [String] {
        ["POST \(url.path)\(url.query.map { "?\($0)" } ?? "")"] + headers.map { "\($0.name): \($0.value)" }
    }

    var text: String { String(decoding: body, as: UTF8.self) }
}

extension TransportResponse {
    static func json(_ status: Int, _ text: String) -> TransportResponse {
        TransportResponse(status: status, body: Array(text.utf8))
    }
}

/// Returns the code of the error that `body` throws; nil if it throws none.
func code(_ body: () async throws -> Void) async -> CountersignError.Code? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? CountersignError)?.code
    }
}
