internal import Countersign
internal import CountersignTransport
internal import Foundation

/// R1: values of the queue file and bits of the write-ahead logs are damaged between two runs. Each run must end, and deliver
/// all undamaged events.
enum DamageScenario {
    private static let eventCount = 40
    private static let controls = 10
    private static let columns: [(table: String, columns: [String])] = [
        ("event", ["message_id", "user_id", "session_id", "queue_time_s", "body"]),
        ("quarantine", ["message_id", "user_id", "body", "quarantined_ms"]), ("counter", ["value"]),
        ("setting", ["value"]), ("sqlite_sequence", ["seq"]),
    ]
    private static let values = [
        "NULL", "-1", "9223372036854775807", "-9223372036854775808", "1e300", "'text'", "x'ff00'", "''",
    ]

    static func run(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        var (hung, lostMany, evicted, control) = (0, 0, 0, 0)
        for round in 0..<(rounds + controls) {
            let isControl = round >= rounds
            let queue = workshop.directory.appendingPathComponent("device-\(round)")
            let folder = queue.appendingPathComponent("default")
            // A killed device leaves its last events in a log.
            let isLog = isControl || round % 3 == 2
            let process = try workshop.startDevice(
                "\(round)", count: isLog ? 1_000_000 : eventCount, in: queue, online: false)
            if isLog {
                try await Task.sleep(nanoseconds: UInt64.random(in: 20_000_000...150_000_000, using: &dice))
                workshop.kill(process)
            } else {
                process.waitUntilExit()
            }
            let recorded = try Journal.read(workshop.journal).count
            let what =
                isLog ? try damageLog(in: folder, isCut: isControl) : try damageValue(in: folder)
            let drain = try workshop.startDevice("drain", count: 0, in: queue)
            guard ends(drain) else {
                hung += 1
                print("R1 round \(round): \(what): does not end")
                workshop.kill(drain)
                continue
            }
            let lost = try unstored(workshop)
            // The damage may lose up to two events: a row, or events whose bits were flipped.
            if lost > 2, isControl {
                control += 1
            } else if lost > 2 {
                lostMany += 1
                print("R1 round \(round): \(what): \(lost) of \(recorded) lost")
            }
            if let database = try? Database(path: folder.appendingPathComponent("queue.sqlite").path),
                let count = try? database.rows(
                    "SELECT coalesce(sum(value), 0) FROM counter WHERE name LIKE 'evicted%'"),
                count != [["0"]],
                what.hasPrefix("counter") == false
            {
                evicted += 1
            }
            // The next round begins with an empty journal.
            try FileManager.default.removeItem(atPath: workshop.journal)
            _ = FileManager.default.createFile(atPath: workshop.journal, contents: nil)
            try FileManager.default.removeItem(at: queue)
        }
        let isGood = hung == 0 && lostMany == 0 && evicted == 0 && control > 0
        print(
            "R1: \(isGood ? "ok" : "FAILED"): \(rounds) damaged queues, \(hung) do not end, \(lostMany) lost more than the "
                + "damaged events, \(evicted) evicted events, control (a log without its end) lost more "
                + "\(control) of \(controls) times")
        return isGood
    }

    private static func ends(_ process: Process) -> Bool {
        let clock = SystemClock()
        let end = clock.uptime + 30
        while process.isRunning, clock.uptime < end { usleep(5_000) }
        return !process.isRunning && process.terminationStatus == 0
    }

    /// The number of events in the journal that the gateway lacks.
    private static func unstored(_ workshop: Workshop) throws -> Int {
        let database = try Database(path: "\(workshop.fixture.dataDirectory)/events.sqlite", isReadOnly: true)
        let ids = Set(try database.rows("SELECT message_id FROM event").map { $0[0] })
        return try Journal.read(workshop.journal).count { !ids.contains($0.id) }
    }

    private static func damageValue(in folder: URL) throws -> String {
        let path = folder.appendingPathComponent("queue.sqlite").path
        func withoutConstraints(_ old: String, _ new: String) throws {
            let database = try Database(path: path)
            try database.rows("PRAGMA writable_schema = ON")
            try database.rows(
                "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name <> 'sqlite_sequence'",
                old, new)
        }
        guard let (table, names) = columns.randomElement(using: &dice),
            let column = names.randomElement(using: &dice)
        else {
            return ""
        }
        // No other user's id, because an event of another user would wait for that user's token.
        let value = (column == "user_id" ? ["NULL", "x'ff00'"] : values).randomElement(using: &dice) ?? ""
        try withoutConstraints(" NOT NULL", " CHECK (1)")
        do {
            let database = try Database(path: path)
            try database.rows(
                "UPDATE \(table) SET \(column) = \(value) WHERE rowid = (SELECT rowid FROM \(table) ORDER BY random() LIMIT 1)"
                    .replacingOccurrences(
                        of: "rowid", with: ["counter", "setting"].contains(table) ? "name" : "rowid"))
        }
        try withoutConstraints(" CHECK (1)", " NOT NULL")
        return "\(table).\(column) = \(value)"
    }

    /// Flips a random bit of a log, or with `isCut` removes all bytes from a random position on.
    private static func damageLog(in folder: URL, isCut: Bool) throws -> String {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
            $0.hasPrefix("incoming-")
        }
        for name in names.shuffled() {
            let file = folder.appendingPathComponent(name)
            var bytes = try Data(contentsOf: file)
            guard let index = bytes.indices.randomElement(using: &dice) else { continue }
            if isCut {
                bytes.removeSubrange(index...)
            } else {
                bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &dice)
            }
            try bytes.write(to: file)
            return "damage to a log, now of \(bytes.count) bytes"
        }
        return "nothing"
    }
}

/// U1: an app tracks many events in a loop. With a healthy disk no event may be dropped.
enum BurstScenario {
    private static let eventCount = 15_000

    static func run(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        var (dropped, lost, longest) = (0, 0, 0.0)
        for round in 0..<rounds {
            let directory = workshop.directory.appendingPathComponent("burst-\(round)")
            let (client, seconds) = try await burst(in: directory, workshop, QueueLimits())
            longest = max(longest, seconds)
            let snapshot = await client.snapshot()
            await client.close()
            dropped += snapshot.dropped
            // `recorded` includes the identification.
            lost += eventCount + 1 - snapshot.recorded
            try FileManager.default.removeItem(at: directory)
        }
        let control = try await control(workshop)
        let isGood = dropped == 0 && lost == 0 && control > 0
        print(
            "U1: \(isGood ? "ok" : "FAILED"): \(rounds) bursts of \(eventCount) events, \(dropped) dropped, \(lost) lost, "
                + String(format: "longest %.0f ms", longest * 1_000)
                + ", control (a locked queue no larger than memory) dropped \(control)")
        return isGood
    }

    private static func burst(
        in directory: URL, _ workshop: Workshop, _ limits: QueueLimits
    ) async throws -> (client: CountersignClient, seconds: TimeInterval) {
        guard let endpoint = URL(string: workshop.endpoint) else { throw TortureError("no endpoint") }
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: "wk")
        configuration.dataDirectory = directory
        configuration.flushPolicy = .manual
        configuration.limits = limits
        let client = try CountersignClient(configuration: configuration)
        client.identify(userID: "ada", token: "a.b.c")
        let clock = SystemClock()
        let start = clock.uptime
        for number in 0..<eventCount { client.track("\(number)", properties: ["n": .integer(Int64(number))]) }
        return (client, clock.uptime - start)
    }

    /// Locks the queue file, and limits the queue to as many events as memory. Returns the number of dropped events.
    private static func control(_ workshop: Workshop) async throws -> Int {
        let directory = workshop.directory.appendingPathComponent("burst-control")
        let folder = directory.appendingPathComponent("default")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let other = try Database(path: folder.appendingPathComponent("queue.sqlite").path)
        try other.rows("BEGIN EXCLUSIVE")
        var limits = QueueLimits()
        limits.maximumEvents = limits.maximumUnsavedEvents
        let (client, _) = try await burst(in: directory, workshop, limits)
        try other.rows("ROLLBACK")
        let dropped = await client.snapshot().dropped
        await client.close()
        return dropped
    }
}
