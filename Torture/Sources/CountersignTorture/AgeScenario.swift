internal import Countersign
internal import CountersignTransport
internal import Foundation

/// K1: a device is killed while it records, at a random moment after its start. Measures the duration of the calls, and the
/// time between the call of the oldest lost event and the kill. Also measures plain writes of the same size.
enum AgeScenario {
    /// The highest allowed age of the oldest lost event in milliseconds (99th percentile of the kills).
    private static let allowed = 5.0

    static func run(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        let library = try Library.build("Torture/Faults/slow-fsync.c", in: workshop.directory)
        var isGood = true
        for delay in [0, 50, 500] {
            for pace in Tracker.Pace.allCases {
                var bytes = 0
                for way in [Tracker.Way.track, .record] {
                    for user in ["", "ada"] {
                        var kills = Kills()
                        for _ in 0..<rounds {
                            try await round(workshop, library, [way.rawValue, pace.rawValue, user], delay) {
                                try await kills.add($0, in: $1, killedAt: $2)
                            }
                        }
                        if way == .track { bytes = kills.bytes }
                        let name =
                            "\(way), \(user.isEmpty ? "anonymous" : "identified"), \(pace.rawValue), fsync + \(delay) ms"
                        isGood =
                            kills.report(name, allowed: allowed, losesAcknowledged: way == .track) && isGood
                    }
                }
                for way in [Tracker.Way.write, .fsync] {
                    var milliseconds: [Double] = []
                    for _ in 0..<rounds {
                        try await round(workshop, library, [way.rawValue, pace.rawValue, "\(bytes)"], delay) {
                            calls, _, _ in milliseconds += calls.compactMap(\.milliseconds)
                        }
                    }
                    print(
                        "K1 plain \(way) of \(bytes) bytes, \(pace.rawValue), fsync + \(delay) ms: \(milliseconds.count) calls, "
                            + spread(milliseconds))
                }
            }
        }
        return isGood
    }

    private static func round(
        _ workshop: Workshop, _ library: String, _ arguments: [String], _ delay: Int,
        _ check: ([Calls.Call], URL, TimeInterval) async throws -> Void
    ) async throws {
        let directory = workshop.directory.appendingPathComponent("tracker")
        let calls = workshop.directory.appendingPathComponent("calls").path
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let process = try workshop.start(
            ["tracker", directory.path, calls] + arguments,
            environment: delay == 0 ? [:] : ["LD_PRELOAD": library, "SLOW_FSYNC_MS": "\(delay)"])
        try await Task.sleep(
            nanoseconds: UInt64.random(in: 0...UInt64(400 + 4 * delay) * 1_000_000, using: &dice))
        let end = SystemClock().uptime
        workshop.kill(process)
        try await check(Calls.read(calls), directory, end)
        try FileManager.default.removeItem(at: directory)
        try FileManager.default.removeItem(atPath: calls)
    }

    fileprivate static func spread(_ values: [Double]) -> String {
        let sorted = values.sorted()
        func at(_ share: Double) -> Double {
            sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
        }
        if sorted.isEmpty { return "none" }
        return String(format: "p50 %.3f ms, p99 %.3f ms, max %.1f ms", at(0.5), at(0.99), at(1))
    }

    /// The losses of the killed devices in one measurement.
    private struct Kills {
        private var milliseconds: [Double] = []
        private var ages: [Double] = []
        private var (called, lost, acknowledgedLost, twice) = (0, 0, 0, 0)
        /// The largest size from `Tracker.events`.
        var bytes = 0

        mutating func add(_ calls: [Calls.Call], in directory: URL, killedAt end: TimeInterval) async throws {
            let events = try await Tracker.events(in: directory)
            let known = Set(events.map(\.number))
            let missing = calls.indices.filter { !known.contains($0) }
            bytes = max(bytes, events.map(\.bytes).max() ?? 0)
            milliseconds += calls.compactMap(\.milliseconds)
            called += calls.count
            lost += missing.count
            acknowledgedLost += missing.count { calls[$0].milliseconds != nil }
            twice += events.count - known.count
            ages.append(missing.first.map { max(0, end - calls[$0].start) * 1_000 } ?? 0)
        }

        func report(_ name: String, allowed: Double, losesAcknowledged: Bool) -> Bool {
            let age = ages.sorted()[min(ages.count - 1, Int(Double(ages.count) * 0.99))]
            let isGood =
                called > 0 && twice == 0 && age <= allowed && (losesAcknowledged || acknowledgedLost == 0)
            print(
                "K1 \(name): \(isGood ? "ok" : "FAILED"): \(ages.count) kills, \(called) calls, \(spread(milliseconds)); "
                    + "\(lost) lost, \(acknowledgedLost) of them after the call, \(twice) twice, age of the oldest lost "
                    + spread(ages))
            return isGood
        }
    }
}

/// A device that records from its start on and notes each call. Arguments: directory, file for the calls, way, pace, and the user's
/// id, or an empty text for no user. For plain writes the last argument is the number of bytes.
struct Tracker {
    enum Way: String {
        /// `track`: the event survives a kill of the process soon after the call.
        case track
        /// `record`: the event survives a power failure once the call has returned.
        case record
        /// A plain write, without and with a flush.
        case write, fsync
    }

    enum Pace: String, CaseIterable {
        case loop
        case millisecond = "1 ms"
        case tenMilliseconds = "10 ms"

        var interval: Duration? {
            switch self {
            case .loop: nil
            case .millisecond: .milliseconds(1)
            case .tenMilliseconds: .milliseconds(10)
            }
        }
    }

    private let directory: URL
    private let calls: Calls
    private let way: Way
    private let pace: Pace
    private let user: String

    init(arguments: [String]) throws {
        guard arguments.count == 5, let way = Way(rawValue: arguments[2]),
            let pace = Pace(rawValue: arguments[3])
        else { throw TortureError("tracker needs 5 arguments") }
        directory = URL(fileURLWithPath: arguments[0])
        calls = try Calls(path: arguments[1])
        self.way = way
        self.pace = pace
        user = arguments[4]
    }

    private static func client(_ directory: URL) throws -> CountersignClient {
        // No server listens on this port.
        guard let endpoint = URL(string: "http://127.0.0.1:9") else { throw TortureError("no endpoint") }
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: "wk")
        configuration.dataDirectory = directory
        configuration.flushPolicy = .manual
        configuration.limits.maximumEvents = 2 * Calls.capacity
        configuration.limits.maximumBytes = 2 << 30
        configuration.limits.maximumUnsavedEvents = Calls.capacity
        configuration.limits.maximumUnsavedBytes = 2 << 30
        return try CountersignClient(configuration: configuration)
    }

    func run() async throws {
        switch way {
        case .track:
            let client = try start()
            try await repeatCall { client.track("\($0)") }
        case .record:
            let client = try start()
            let call: @Sendable (Int) async throws -> Void = { try await client.record("\($0)") }
            // With a pace, the next call does not wait for the end of a slow call.
            try await repeatCall(isConcurrent: pace != .loop, call)
        case .write, .fsync:
            guard let size = Int(user) else { throw TortureError("not a number of bytes") }
            let bytes = [UInt8](repeating: 120, count: size)
            let file = open(
                directory.appendingPathComponent("plain").path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            let isFlushed = way == .fsync
            begin()
            // A limited number of writes, so that they do not fill the page cache.
            try await repeatCall(count: 20_000) { _ in
                guard Foundation.write(file, bytes, size) == size, !isFlushed || Foundation.fsync(file) == 0
                else { throw TortureError("the disk failed") }
            }
        }
    }

    private func start() throws -> CountersignClient {
        let client = try Self.client(directory)
        // An empty id is ignored.
        client.identify(userID: user, token: "a.a.a")
        begin()
        return client
    }

    private func begin() {
        print("go")
        fflush(nil)
    }

    private func repeatCall(
        count: Int = Calls.capacity, isConcurrent: Bool = false,
        _ call: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        var next = ContinuousClock.now
        for number in 0..<count {
            calls.begin(number)
            let noted: @Sendable () async throws -> Void = { [calls] in
                let start = SystemClock().uptime
                try await call(number)
                calls.end(number, after: SystemClock().uptime - start)
            }
            if isConcurrent { Task(operation: noted) } else { try await noted() }
            guard let interval = pace.interval else { continue }
            next = max(next + interval, ContinuousClock.now)
            try await Task.sleep(until: next, tolerance: .zero, clock: .continuous)
        }
        // Waits for the kill.
        while true { sleep(3_600) }
    }

    /// The events in the queue of a killed device, with estimated sizes in the SDK's log.
    static func events(in directory: URL) async throws -> [(number: Int, bytes: Int)] {
        let client = try client(directory)
        _ = await client.snapshot()
        await client.close()
        let database = try Database(path: directory.appendingPathComponent("default/queue.sqlite").path)
        return try database.rows(
            """
            SELECT json_extract(CAST(body AS TEXT), '$.event'),
                length(body) + length(message_id) + coalesce(length(user_id), 0) + length(session_id) + 32 FROM event
            """
        ).compactMap { row in
            guard let number = Int(row[0]), let bytes = Int(row[1]) else { return nil }
            return (number, bytes)
        }
    }
}

/// The start and duration of each call, in a memory-mapped file, so that a kill loses no call.
///
/// `@unchecked Sendable`: one thread counts the calls, and each call writes its own elements.
struct Calls: @unchecked Sendable {
    struct Call {
        let start: TimeInterval
        /// Nil if the call had not returned.
        let milliseconds: Double?
    }

    static let capacity = 200_000

    private let base: UnsafeMutablePointer<Double>

    init(path: String) throws {
        let bytes = (2 * Self.capacity + 1) * MemoryLayout<Double>.size
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0, ftruncate(file, off_t(bytes)) == 0,
            let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), memory != MAP_FAILED
        else { throw TortureError("cannot map \(path)") }
        close(file)
        base = memory.bindMemory(to: Double.self, capacity: 2 * Self.capacity + 1)
    }

    func begin(_ number: Int) {
        base[2 * number + 1] = SystemClock().uptime
        base[0] = Double(number + 1)
    }

    func end(_ number: Int, after seconds: TimeInterval) { base[2 * number + 2] = max(seconds, 1e-9) }

    static func read(_ path: String) throws -> [Call] {
        let data = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
        return data.withUnsafeBytes { buffer in
            let values = buffer.bindMemory(to: Double.self)
            return (0..<Int(values[0])).map { number in
                let seconds = values[2 * number + 2]
                return Call(
                    start: values[2 * number + 1], milliseconds: seconds > 0 ? seconds * 1_000 : nil)
            }
        }
    }
}
