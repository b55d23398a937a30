internal import Countersign
internal import CountersignGatewayTesting
internal import CountersignTransport
internal import Foundation

/// B1: a sequence of faults for two devices on one queue, which are killed at times. Recorded events arrive
/// once, recording resumes on its own, and each wait is bounded and visible.
enum BadDayScenario {
    /// Recording must resume on its own within this many seconds after the disk has space again.
    private static let allowed = 1.0
    private static let troubleSeconds = 2.0

    static func run(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        let disk = try SmallDisk(at: workshop.directory.appendingPathComponent("disk"))
        defer { disk?.remove() }
        let queue = disk?.directory ?? workshop.directory.appendingPathComponent("device")
        let trouble = workshop.directory.appendingPathComponent("trouble")
        try Weather.none.write(to: trouble)
        func start(_ name: String) throws -> Process {
            try workshop.start([
                "bad-day-device", queue.path, workshop.endpoint, workshop.fixture.writeKey,
                workshop.tokenFile,
                workshop.journal, name, trouble.path,
            ])
        }

        var devices = try ["a", "b"].map { try start($0) }
        var kills = 0
        var longest = 0.0
        for round in 0..<rounds {
            for weather in Weather.allCases.shuffled(using: &dice) where weather != .diskFull || disk != nil {
                // The clock is right, a day fast or a day slow.
                try weather.write(
                    to: trouble, offset: [0, 86_400, -86_400][Int.random(in: 0..<3, using: &dice)])
                if weather == .diskFull { try disk?.fill() }
                try await pause(troubleSeconds)
                if weather == .diskFull {
                    try disk?.free()
                    longest = max(longest, try await timeUntilRecorded(workshop.journal))
                }
                try Weather.none.write(to: trouble)
                let victim = Int.random(in: 0..<4, using: &dice)
                if devices.indices.contains(victim) {
                    workshop.kill(devices[victim])
                    kills += 1
                    devices[victim] = try start("\(round)-\(weather)-\(victim)")
                }
                try await pause(0.5)
            }
        }
        for device in devices { workshop.kill(device) }
        try workshop.drain(queue)
        let lines = try Journal.lines(workshop.journal)
        let hidden = lines.count { $0.hasPrefix("hidden") }
        let rejected = lines.count { $0.hasPrefix("refused") }
        return try workshop.account(
            "B1",
            "\(rounds) bad days, \(kills) kills, \(rejected) rejected calls, \(hidden) waits hidden or unbounded, "
                + (disk == nil
                    ? "no full disk (a small one needs root)"
                    : String(format: "at most %.0f ms from a free disk to an event", longest * 1_000)),
            isGood: hidden == 0 && longest <= allowed)
    }

    private static func pause(_ seconds: TimeInterval) async throws {
        try await Task.sleep(nanoseconds: UInt64(seconds * 1e9))
    }

    /// Seconds until a device has recorded another event, at most about 10.
    private static func timeUntilRecorded(_ journal: String) async throws -> TimeInterval {
        let clock = SystemClock()
        let begin = clock.uptime
        let count = try Journal.read(journal).count
        while clock.uptime < begin + 10 {
            if try Journal.read(journal).count > count { break }
            try await pause(0.01)
        }
        return clock.uptime - begin
    }
}

/// The current fault. Devices read its name and their clock offset in seconds from a file.
private enum Weather: String, CaseIterable {
    case none, portal, proxyDate, noNetwork, noProvider, diskFull

    func write(to file: URL, offset: Int = 0) throws {
        try Data("\(rawValue) \(offset)".utf8).write(to: file, options: .atomic)
    }

    static func read(_ file: String) -> (weather: Weather, offset: TimeInterval) {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return (.none, 0) }
        let words = text.split(separator: " ")
        guard words.count == 2 else { return (.none, 0) }
        return (Weather(rawValue: String(words[0])) ?? .none, TimeInterval(words[1]) ?? 0)
    }
}

/// A file system of 8 MiB in memory, which a file can fill.
private struct SmallDisk {
    let directory: URL
    private var filler: URL { directory.appendingPathComponent("filler") }

    /// Returns nil where file systems cannot be mounted.
    init?(at directory: URL) throws {
        self.directory = directory
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        guard try Self.run("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", directory.path) == 0 else {
            return nil
        }
    }

    func remove() { _ = try? Self.run("umount", directory.path) }

    func fill() throws {
        let file = open(filler.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw TortureError("cannot fill \(directory.path)") }
        defer { close(file) }
        let block = [UInt8](repeating: 1, count: 4_096)
        while Foundation.write(file, block, block.count) > 0 {}
    }

    func free() throws { try FileManager.default.removeItem(at: filler) }

    private static func run(_ arguments: String...) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }
}

/// A device that records until its kill. Arguments: directory, endpoint, write key, token file, journal, name, file of the fault.
struct BadDayDevice {
    private let configuration: CountersignConfiguration
    private let journal: Journal
    private let name: String
    private let trouble: String

    init(arguments: [String]) throws {
        guard arguments.count == 7, let endpoint = URL(string: arguments[1]) else {
            throw TortureError("bad-day-device needs 7 arguments")
        }
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: arguments[2])
        configuration.dataDirectory = URL(fileURLWithPath: arguments[0])
        configuration.networkRetry = RetryPolicy(baseDelay: 0.05, maximumDelay: 0.5, maximumServerDelay: 0.5)
        configuration.authenticationRetry = configuration.networkRetry
        configuration.flushPolicy = FlushPolicy(eventCount: 5, interval: 0.05, onBackground: false)
        let (token, trouble) = (arguments[3], arguments[6])
        configuration.tokenProvider = { _ in
            if Weather.read(trouble).weather == .noProvider { throw TortureError("the provider is down") }
            return try String(contentsOfFile: token, encoding: .utf8)
        }
        self.configuration = configuration
        journal = try Journal(path: arguments[4])
        name = arguments[5]
        self.trouble = trouble
    }

    func run() async throws {
        let client = try CountersignClient(
            configuration: configuration, transport: Road(trouble: trouble),
            clock: WrongClock(trouble: trouble))
        client.identify(userID: "ada")
        print("go")
        fflush(nil)
        var (still, sent) = (0, 0)
        for number in 0... {
            let start = SystemClock().uptime
            do {
                let id = try await client.record("\(name)-\(number)")
                journal.write("\(id) \(Int((SystemClock().uptime - start) * 1_000_000))")
            } catch {
                // An event that was not stored does not count as lost.
                journal.write("refused \(error)")
            }
            try await Task.sleep(nanoseconds: 10_000_000)
            guard number.isMultiple(of: 50) else { continue }
            let snapshot = await client.snapshot()
            let waits =
                [snapshot.nextAttemptIn].compactMap { $0 } + snapshot.parked.compactMap(\.nextAttemptIn)
            if waits.contains(where: { $0 > 3_600 }) { journal.write("hidden unbounded") }
            // Events are queued, nothing was sent since the previous snapshot, and the snapshot shows no reason.
            let isStill =
                snapshot.queued > 0 && snapshot.sent == sent && waits.isEmpty && snapshot.lastError == nil
            still = isStill ? still + 1 : 0
            if still == 3 { journal.write("hidden unseen") }
            sent = snapshot.sent
        }
    }
}

/// The network path to the gateway, with the current fault.
private struct Road: HTTPTransport {
    let trouble: String
    private let transport = CurlTransport()

    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        switch Weather.read(trouble).weather {
        case .noNetwork: throw HTTPTransportError(.connectionLost, "no network")
        case .portal:
            return TransportResponse(
                status: 200, headers: [("Content-Type", "text/html")],
                body: Array("<html>Welcome</html>".utf8))
        case .proxyDate:
            return TransportResponse(
                status: 503, headers: [("Date", "Sun, 01 Jan 2040 00:00:00 GMT"), ("Retry-After", "1")],
                body: Array("upstream".utf8))
        case .none, .noProvider, .diskFull: return try await transport.send(request)
        }
    }
}

/// A clock with the offset of the current fault.
private struct WrongClock: ClientClock {
    let trouble: String
    private let clock = SystemClock()

    var now: Date { clock.now.addingTimeInterval(Weather.read(trouble).offset) }
    var uptime: TimeInterval { clock.uptime }
    func sleep(until uptime: TimeInterval) async throws { try await clock.sleep(until: uptime) }
}
