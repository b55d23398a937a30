internal import Countersign
internal import Foundation

/// K1: the device is killed while it tracks. How long before that was the oldest event tracked that is lost?
enum AgeScenario {
    /// What an event may be at risk for, from `track` on, in all but the worst hundredth of the kills: 5 ms.
    private static let allowed = 5.0

    static func run(rounds: Int) async throws -> Bool {
        var isGood = true
        for (name, isLoop, delay) in [
            ("idle", false, 0), ("tight loop", true, 0), ("tight loop, fsync + 50 ms", true, 50),
            ("tight loop, fsync + 200 ms", true, 200), ("tight loop, fsync + 500 ms", true, 500),
        ] {
            for user in [nil, "ada"] {
                isGood =
                    try await measure(
                        "\(name), \(user == nil ? "anonymous" : "identified")", isLoop: isLoop, user: user,
                        delay: delay, rounds: rounds) && isGood
            }
        }
        return isGood
    }

    private static func measure(
        _ name: String, isLoop: Bool, user: String?, delay: Int, rounds: Int
    ) async throws -> Bool {
        let workshop = try Workshop()
        let library = try Library.build("scripts/slow-fsync.c", in: workshop.directory)
        var ages: [Double] = []
        var tracked = 0
        var lost = 0
        var twice = 0
        for round in 0..<rounds {
            let directory = workshop.directory.appendingPathComponent("tracker-\(round)")
            let times = workshop.directory.appendingPathComponent("times-\(round)").path
            let process = try workshop.start(
                ["tracker", directory.path, workshop.endpoint, times, isLoop ? "loop" : "idle", user ?? ""],
                environment: delay == 0 ? [:] : ["LD_PRELOAD": library, "SLOW_FSYNC_MS": "\(delay)"])
            try await Task.sleep(nanoseconds: UInt64.random(in: 50_000_000...400_000_000))
            let end = SystemClock().uptime
            workshop.kill(process)
            let instants = try Instants.read(times)
            let kept = try await Tracker.kept(in: directory, endpoint: workshop.endpoint)
            let known = Set(kept)
            let missing = instants.indices.filter { !known.contains($0) }
            tracked += instants.count
            lost += missing.count
            twice += kept.count - known.count
            ages.append(missing.first.map { max(0, end - instants[$0]) * 1_000 } ?? 0)
            try FileManager.default.removeItem(at: directory)
            try FileManager.default.removeItem(atPath: times)
        }
        ages.sort()
        func age(_ share: Double) -> Double { ages[min(ages.count - 1, Int(Double(ages.count) * share))] }
        let isGood = tracked > 0 && twice == 0 && age(0.99) <= allowed
        print(
            "K1 \(name): \(isGood ? "ok" : "FAILED"): \(rounds) kills, \(tracked) tracked, \(lost) lost, \(twice) twice, "
                + "age of the oldest lost "
                + String(format: "p50 %.1f ms, p99 %.1f ms, max %.1f ms", age(0.5), age(0.99), age(1)))
        return isGood
    }
}

/// A device that tracks, and notes when. Arguments: directory, endpoint, file of instants, `loop` or `idle`, and
/// the user's id, which is empty for none.
struct Tracker {
    let directory: URL
    let endpoint: URL
    let instants: Instants
    let isLoop: Bool
    let user: String

    init(arguments: [String]) throws {
        guard arguments.count == 5, let endpoint = URL(string: arguments[1]) else {
            throw TortureError("tracker needs 5 arguments")
        }
        directory = URL(fileURLWithPath: arguments[0])
        self.endpoint = endpoint
        instants = try Instants(path: arguments[2])
        isLoop = arguments[3] == "loop"
        user = arguments[4]
    }

    private static func client(_ directory: URL, _ endpoint: URL) throws -> CountersignClient {
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: "wk")
        configuration.dataDirectory = directory
        configuration.flushPolicy = .manual
        configuration.limits.maximumEvents = Instants.capacity
        configuration.limits.maximumBytes = 2 << 30
        configuration.limits.maximumUnsavedEvents = Instants.capacity
        configuration.limits.maximumUnsavedBytes = 2 << 30
        return try CountersignClient(configuration: configuration)
    }

    func run() async throws {
        let client = try Self.client(directory, endpoint)
        // An empty id is ignored.
        client.identify(userID: user, token: "a.a.a")
        try await client.record("ready")
        print("go")
        fflush(nil)
        let clock = SystemClock()
        for number in 0..<Instants.capacity {
            instants.note(clock.uptime, at: number)
            client.track("\(number)")
            instants.count(number + 1)
            if !isLoop { try await Task.sleep(nanoseconds: 10_000_000) }
        }
    }

    /// The numbers of the events that a killed device has left.
    static func kept(in directory: URL, endpoint: String) async throws -> [Int] {
        guard let endpoint = URL(string: endpoint) else { return [] }
        let client = try client(directory, endpoint)
        guard await client.snapshot().recorded > 0 else { throw TortureError("the queue cannot be read") }
        await client.close()
        let database = try Database(path: directory.appendingPathComponent("default/queue.sqlite").path)
        return try database.rows("SELECT json_extract(CAST(body AS TEXT), '$.event') FROM event")
            .compactMap { Int($0[0]) }
    }
}

/// Instants in memory that a file shares, so that a kill costs none: how many there are, then each.
struct Instants {
    static let capacity = 1_000_000

    private let base: UnsafeMutablePointer<Double>

    init(path: String) throws {
        let bytes = (Self.capacity + 1) * MemoryLayout<Double>.size
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0, ftruncate(file, off_t(bytes)) == 0,
            let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), memory != MAP_FAILED
        else { throw TortureError("cannot map \(path)") }
        close(file)
        base = memory.bindMemory(to: Double.self, capacity: Self.capacity + 1)
    }

    func note(_ instant: Double, at number: Int) { base[number + 1] = instant }
    func count(_ count: Int) { base[0] = Double(count) }

    static func read(_ path: String) throws -> [Double] {
        let data = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
        return data.withUnsafeBytes { buffer in
            let values = buffer.bindMemory(to: Double.self)
            return Array(values[1..<(Int(values[0]) + 1)])
        }
    }
}
