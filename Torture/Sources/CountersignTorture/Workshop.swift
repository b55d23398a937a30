internal import CountersignGateway
internal import CountersignGatewayTesting
internal import Foundation

/// A gateway with an app, and the files of the devices of one scenario.
///
/// `@unchecked Sendable`: its properties do not change, and a gateway may be used on any thread.
final class Workshop: @unchecked Sendable {
    let fixture: GatewayFixture
    let directory: URL
    let tokenFile: String
    let journal: String
    private let executable = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()

    init() throws {
        fixture = try GatewayFixture(enforcement: .required)
        directory = URL(fileURLWithPath: fixture.dataDirectory).appendingPathComponent("torture")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        tokenFile = directory.appendingPathComponent("token").path
        journal = directory.appendingPathComponent("journal").path
        try fixture.token(for: "ada", lifetime: 36_000).write(
            toFile: tokenFile, atomically: true, encoding: .utf8)
    }

    var endpoint: String { "http://127.0.0.1:\(fixture.gateway.port)" }

    /// Starts a process of this executable and waits for its first output, which shows that it runs.
    func start(_ arguments: [String], environment: [String: String] = [:]) throws -> Process {
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        guard output.fileHandleForReading.availableData.isEmpty == false else {
            process.waitUntilExit()
            throw TortureError("\(arguments[0]) ended with \(process.terminationStatus)")
        }
        return process
    }

    func startDevice(
        _ prefix: String, count: Int, in queue: URL? = nil, online: Bool = true, endpoint: String? = nil,
        environment: [String: String] = [:]
    ) throws -> Process {
        try start(
            [
                "device", (queue ?? directory.appendingPathComponent("device")).path,
                endpoint ?? self.endpoint,
                fixture.writeKey, tokenFile, journal, prefix, "\(count)", online ? "online" : "offline",
            ], environment: environment)
    }

    func kill(_ process: Process) {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Starts a device that sends the remaining events of a queue, and waits for its end.
    func drain(_ queue: URL? = nil, endpoint: String? = nil) throws {
        let process = try startDevice("drain", count: 0, in: queue, endpoint: endpoint)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw TortureError("the drain failed") }
    }

    func check(queueIn directory: URL) throws -> Bool {
        let path = directory.appendingPathComponent("default/queue.sqlite").path
        return try Database(path: path).rows("PRAGMA integrity_check") == [["ok"]]
    }

    /// Compares the journal with the gateway's database.
    ///
    /// `isGood` is false if the scenario has failed for another reason, which `facts` describes.
    func account(_ name: String, _ facts: String, isGood isGoodSoFar: Bool = true) throws -> Bool {
        let accepted = try Journal.read(journal)
        let database = try Database(path: "\(fixture.dataDirectory)/events.sqlite", isReadOnly: true)
        let stored = try database.rows("SELECT message_id, name FROM event WHERE type = 'track'")
            .map { (id: $0[0], name: $0[1]) }
        let ids = Set(stored.map(\.id))
        let missing = accepted.map(\.id).filter { !ids.contains($0) }
        let lost = missing.count
        let twice = stored.count - Set(stored.map(\.name)).count
        let times = accepted.map(\.microseconds).sorted()
        let p99 = times.isEmpty ? 0 : times[times.count * 99 / 100]
        let isGood = isGoodSoFar && lost == 0 && twice == 0 && !accepted.isEmpty
        print(
            "\(name): \(isGood ? "ok" : "FAILED"): \(facts), \(accepted.count) accepted, \(lost) lost, \(twice) twice, "
                + "\(stored.count) stored, record p99 \(p99) µs"
                + (lost > 0 ? ", lost: \(missing.prefix(3).joined(separator: " "))" : ""))
        return isGood
    }
}

/// The gateway as its own process. Arguments: data directory, port.
struct GatewayProcess {
    let configuration: GatewayConfiguration

    init(arguments: [String]) throws {
        guard arguments.count == 2, let port = UInt16(arguments[1]) else {
            throw TortureError("gateway needs 2 arguments")
        }
        var configuration = GatewayConfiguration(dataDirectory: arguments[0])
        configuration.port = port
        self.configuration = configuration
    }

    func run() throws -> Never {
        let gateway = try Gateway(configuration: configuration)
        try gateway.start()
        print("go")
        fflush(nil)
        // Waits for the kill.
        while true { sleep(3_600) }
    }
}
