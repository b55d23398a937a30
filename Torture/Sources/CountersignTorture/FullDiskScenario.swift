internal import Countersign
internal import CountersignTransport
internal import Foundation

/// F1: the disk becomes full and stays full. All events stored earlier are still sent and deleted, by the
/// same process or by a process that starts on the full disk, while new events compete for the space.
enum FullDiskScenario {
    private static let eventCount = 60
    private static let controls = 3

    static func run(rounds: Int) async throws -> Bool {
        var isGood = true
        for kind in Disk.Kind.allCases {
            isGood = try await run(kind, rounds: (rounds + 1) / 2) && isGood
        }
        return isGood
    }

    private static func run(_ kind: Disk.Kind, rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        guard let disk = try Disk(kind, at: workshop.directory.appendingPathComponent("disk")) else {
            print("F1 \(kind): skipped, a file system cannot be mounted here (it needs root)")
            return true
        }
        defer { disk.remove() }
        var (unsent, undeleted, control) = (0, 0, 0)
        for round in 0..<(rounds + controls) {
            let isControl = round >= rounds
            let queue = disk.directory.appendingPathComponent("\(round)")
            let start = workshop.directory.appendingPathComponent("start-\(round)").path
            let done = workshop.directory.appendingPathComponent("done-\(round)").path
            let isRestarted = isControl || round.isMultiple(of: 2)
            func device(_ count: Int) throws -> Process {
                try workshop.start([
                    "full-disk-device", queue.path, workshop.endpoint, workshop.fixture.writeKey,
                    workshop.tokenFile, workshop.journal + (isControl ? "-control" : ""), "\(round)",
                    "\(count)", start, done,
                ])
            }
            var process = try device(eventCount)
            if isRestarted { workshop.kill(process) }
            if isControl {
                try FileManager.default.removeItem(at: queue.appendingPathComponent("default/reserve"))
            }
            try disk.fill()
            if isRestarted { process = try device(0) }
            try Data().write(to: URL(fileURLWithPath: start))
            process.waitUntilExit()
            // The disk is still full.
            let result = (try? String(contentsOfFile: done, encoding: .utf8)) ?? "nothing"
            if isControl {
                let isGood = try missing(workshop, round) == 0 && result.hasPrefix("complete")
                control += isGood ? 0 : 1
            } else if try missing(workshop, round) > 0 {
                unsent += 1
                print("F1 \(kind) round \(round): not sent (\(result))")
            } else if !result.hasPrefix("complete") {
                undeleted += 1
                print("F1 \(kind) round \(round): not deleted (\(result))")
            }
            try disk.free()
            try FileManager.default.removeItem(at: queue)
        }
        return try workshop.account(
            "F1 \(kind)",
            "\(rounds) full disks, \(unsent) with unsent events, \(undeleted) with undeleted events, control (a start "
                + "without the reserve) failed \(control) of \(controls) times",
            isGood: unsent == 0 && undeleted == 0 && control > 0)
    }

    /// The number of events of a round that the gateway has not stored.
    private static func missing(_ workshop: Workshop, _ round: Int) throws -> Int {
        let database = try Database(path: "\(workshop.fixture.dataDirectory)/events.sqlite", isReadOnly: true)
        let names = Set(try database.rows("SELECT name FROM event WHERE type = 'track'").map { $0[0] })
        return (0..<eventCount).count { !names.contains("\(round)-\($0)") }
    }
}

/// A device that records events, and sends them once a file exists, while it records further events. Arguments: directory,
/// endpoint, write key, token file, journal, prefix, number of events, file that starts the sending, file for the result.
struct FullDiskDevice {
    private let configuration: CountersignConfiguration
    private let token: String
    private let journal: Journal
    private let prefix: String
    private let count: Int
    private let start: String
    private let done: String

    init(arguments: [String]) throws {
        guard arguments.count == 9, let endpoint = URL(string: arguments[1]), let count = Int(arguments[6])
        else { throw TortureError("full-disk-device needs 9 arguments") }
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: arguments[2])
        configuration.dataDirectory = URL(fileURLWithPath: arguments[0])
        configuration.networkRetry = RetryPolicy(baseDelay: 0.02, maximumDelay: 0.1, maximumServerDelay: 0.1)
        configuration.flushPolicy = .manual
        self.configuration = configuration
        token = try String(contentsOfFile: arguments[3], encoding: .utf8)
        journal = try Journal(path: arguments[4])
        prefix = arguments[5]
        self.count = count
        start = arguments[7]
        done = arguments[8]
    }

    func run() async throws {
        let client = try CountersignClient(configuration: configuration)
        client.identify(userID: "ada", token: token)
        let text = String(repeating: "x", count: 1_500)
        for number in 0..<count {
            let id = try await client.record("\(prefix)-\(number)", properties: ["text": .string(text)])
            journal.write("\(id) 0")
            // A snapshot moves events to the queue file, so that half are in that file and half in the log.
            if number == count / 2 { _ = await client.snapshot() }
        }
        print("go")
        fflush(nil)
        while !FileManager.default.fileExists(atPath: start) { usleep(1_000) }
        let competitor = Task {
            var number = 0
            while !Task.isCancelled {
                number += 1
                client.track("competitor-\(prefix)-\(number)", properties: ["text": .string(text)])
                try? await Task.sleep(nanoseconds: 1_000_000)
            }
        }
        // Up to 20 queued events are the competitor's, which continues. Earlier events are sent first.
        let clock = SystemClock()
        let end = clock.uptime + 20
        var flush = await client.flush()
        while flush.queued > 20, clock.uptime < end { flush = await client.flush() }
        competitor.cancel()
        let snapshot = await client.snapshot()
        let result =
            "\(flush.queued <= 20 ? "complete" : flush.ending.rawValue) queued \(snapshot.queued) "
            + (snapshot.lastError ?? "")
        try result.write(toFile: done, atomically: false, encoding: .utf8)
        // Exits without closing the client, which would write to the disk.
        _exit(0)
    }
}
