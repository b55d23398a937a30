internal import Countersign
internal import CountersignLocations
internal import CountersignTransport
internal import Foundation

/// A device whose user changes repeatedly. Notes each change before the change begins, and each acknowledged event.
///
/// Arguments: directory, journal, `user` or `anonymous` for the beginning, and a number of changes. After these
/// changes the device kills itself as soon as an event is acknowledged.
struct IdentityDevice {
    let directory: URL
    let journal: Journal
    let beginsAnonymously: Bool
    let changes: Int

    init(arguments: [String]) throws {
        guard arguments.count == 4, let changes = Int(arguments[3]) else {
            throw TortureError("identity-device needs 4 arguments")
        }
        self.changes = changes
        directory = URL(fileURLWithPath: arguments[0])
        journal = try Journal(path: arguments[1])
        beginsAnonymously = arguments[2] == "anonymous"
    }

    static func client(_ directory: URL) throws -> CountersignClient {
        // No server listens on this port.
        guard let endpoint = URL(string: "http://127.0.0.1:9") else { throw TortureError("no endpoint") }
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: "wk")
        configuration.dataDirectory = directory
        configuration.flushPolicy = .manual
        configuration.log = nil
        return try CountersignClient(configuration: configuration)
    }

    static func token(of user: String) -> String { "\(user).a.a" }

    func run() async throws {
        print("go")
        fflush(nil)
        let client = try Self.client(directory)
        for number in 0..<1_000_000 {
            let isAnonymous = number.isMultiple(of: 2) == beginsAnonymously
            let user = isAnonymous ? "-" : "user\(number)-\(UInt32.random(in: 0...UInt32.max))"
            journal.write("begin \(user)")
            if !isAnonymous {
                client.identify(userID: user, token: Self.token(of: user))
            } else if number > 0 {
                Task { await client.logOut() }
                while client.userID != nil { await Task.yield() }
            }
            // Concurrently, so that some events are written while others are flushed.
            await withTaskGroup(of: Void.self) { group in
                for event in 0..<8 {
                    group.addTask {
                        let name = "\(number)-\(event)-\(UInt32.random(in: 0...UInt32.max))"
                        do {
                            try await client.record(name)
                            journal.write("acknowledged \(user) \(name)")
                            if number + 1 >= changes { kill(getpid(), SIGKILL) }
                        } catch {
                            journal.write("refused \(user) \(name)")
                        }
                    }
                }
            }
        }
    }
}

/// A device that records locations and notes each acknowledged location. Arguments: directory, journal.
struct LocationDevice {
    let directory: URL
    let journal: Journal

    init(arguments: [String]) throws {
        guard arguments.count == 2 else { throw TortureError("location-device needs 2 arguments") }
        directory = URL(fileURLWithPath: arguments[0])
        journal = try Journal(path: arguments[1])
    }

    static func client(_ directory: URL) throws -> LocationClient {
        var configuration = LocationConfiguration()
        configuration.dataDirectory = directory
        configuration.log = nil
        return try LocationClient(configuration: configuration)
    }

    func run() async throws {
        print("go")
        fflush(nil)
        let client = try Self.client(directory)
        while true {
            do {
                let uuid = try await client.record(Location(latitude: 46, longitude: 14, timestamp: Date()))
                journal.write("acknowledged - \(uuid)")
            } catch {
                journal.write("refused - -")
            }
        }
    }
}

/// An app that tries to send its events, signs its user out and ends.
struct LeavingDevice {
    let directory: URL

    init(arguments: [String]) throws {
        guard arguments.count == 1 else { throw TortureError("leaving-device needs 1 argument") }
        directory = URL(fileURLWithPath: arguments[0])
    }

    func run() async throws {
        print("go")
        fflush(nil)
        let client = try IdentityDevice.client(directory)
        client.identify(userID: "leaver", token: IdentityDevice.token(of: "leaver"))
        client.track("late")
        await client.flush()
        _ = await client.snapshot()
        await client.logOut()
        await client.close()
    }
}

/// I1 to I4: users change during kills, a stop, and failing fsync. I3 checks only that another process does not hang.
/// The other scenarios check the user, the acknowledged events and, except I4, the user's token at the next start.
enum IdentityScenario {
    /// The files of a device, compared with its journal.
    private struct Account {
        var acknowledged = 0
        var lost = 0
        /// 1 if the next start has neither the last acknowledged user nor a later one.
        var strangers = 0
        /// 1 if the next start has the last acknowledged user, but not that user's token.
        var tokensLost = 0
        /// The lost events, their users, the stored users, and the device's files.
        var losses: [String] = []

        static func + (left: Account, right: Account) -> Account {
            Account(
                acknowledged: left.acknowledged + right.acknowledged, lost: left.lost + right.lost,
                strangers: left.strangers + right.strangers, tokensLost: left.tokensLost + right.tokensLost,
                losses: left.losses + right.losses)
        }

        var isGood: Bool { lost + strangers + tokensLost == 0 }

        var text: String {
            "\(acknowledged) acknowledged, \(lost) lost, \(strangers) starts with another user, "
                + "\(tokensLost) tokens lost"
        }
    }

    /// `checksTokens` is false for an image of `PowerModel`, which never replaces a file by a renamed one.
    private static func account(
        _ directory: URL, journal: String, checksTokens: Bool
    ) async throws -> Account {
        let lines = try Journal.lines(journal).map { $0.split(separator: " ").map(String.init) }
        var account = Account()
        let client = try IdentityDevice.client(directory)
        let present = client.userID ?? "-"
        _ = await client.snapshot()
        await client.close()
        let path = directory.appendingPathComponent("default/queue.sqlite").path
        let rows =
            FileManager.default.fileExists(atPath: path)
            ? try Database(path: path).rows(
                "SELECT user_id, json_extract(CAST(body AS TEXT), '$.event') FROM event") : []
        let kept = Set(rows.map { "\($0[0].isEmpty ? "-" : $0[0]) \($0[1])" })
        var known = "-"
        var isCertain = false
        var candidates: Set<String> = ["-"]
        for line in lines {
            switch line.first {
            case "begin" where line.count == 2: candidates.insert(line[1])
            case "acknowledged" where line.count == 3:
                account.acknowledged += 1
                if !kept.contains("\(line[1]) \(line[2])") {
                    account.lost += 1
                    let user = rows.first { $0[1] == line[2] }?[0]
                    account.losses.append("\(line[2]) of \(line[1]), stored user: \(user ?? "none")")
                }
                known = line[1]
                isCertain = true
                candidates = [known]
            default: break
            }
        }
        if account.lost > 0 {
            let files = FileManager.default.enumerator(atPath: directory.path)?.allObjects ?? []
            account.losses.append("\(rows.count) events in the queue; files: \(files)")
        }
        // The candidates are the last acknowledged user, and users of later changes, each of which may be durable.
        if !candidates.contains(present) { account.strangers = 1 }
        let tokens = FileTokenStore(directory: directory.appendingPathComponent("default/tokens"))
        if checksTokens, isCertain, present == known, known != "-",
            try tokens.token(for: known) != IdentityDevice.token(of: known)
        {
            account.tokensLost = 1
        }
        return account
    }

    /// Runs one device until a random moment, or until it kills itself. Compares its journal with the data in `image`, or in its
    /// directory.
    private static func round(
        _ workshop: Workshop, _ name: String, beginsAnonymously: Bool,
        milliseconds: ClosedRange<Int>? = nil, changes: Int = .max,
        environment: [String: String] = [:], image: URL? = nil,
        meanwhile: (URL) throws -> () -> Void = { _ in {} }
    ) async throws -> Account {
        let directory = workshop.directory.appendingPathComponent(name)
        let journal = workshop.directory.appendingPathComponent("\(name).journal").path
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let end = try meanwhile(directory)
        let device = try workshop.start(
            [
                "identity-device", directory.path, journal, beginsAnonymously ? "anonymous" : "user",
                "\(changes)",
            ],
            environment: environment)
        if let milliseconds {
            try await Task.sleep(nanoseconds: UInt64(Int.random(in: milliseconds, using: &dice)) * 1_000_000)
            workshop.kill(device)
        } else {
            device.waitUntilExit()
        }
        end()
        return try await account(image ?? directory, journal: journal, checksTokens: image == nil)
    }

    private static func report(
        _ name: String, rounds: Int, _ account: Account, control: Account
    ) -> Bool {
        let isGood = account.isGood && account.acknowledged > 0 && !control.isGood
        for loss in account.losses.prefix(40) { print("\(name): lost: \(loss)") }
        print(
            "\(name): \(isGood ? "ok" : "FAILED"): \(rounds) rounds, \(account.text); "
                + "control: \(control.text)")
        return isGood
    }

    /// I1: a device is killed soon after `identify` and `logOut`. Control: writes of identity and tokens are dropped.
    static func kills(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        let faults = try Library.build("Torture/Faults/faults.c", in: workshop.directory)
        var (account, control) = (Account(), Account())
        for number in 0..<rounds {
            account =
                account
                + (try await round(
                    workshop, "kill-\(number)", beginsAnonymously: number.isMultiple(of: 2),
                    changes: Int.random(in: 1...8, using: &dice)))
        }
        for number in 0..<3 {
            control =
                control
                + (try await round(
                    workshop, "kill-control-\(number)", beginsAnonymously: false, changes: 2 * number + 1,
                    environment: ["LD_PRELOAD": faults, "FAULT_DROP": "/.new-"]))
        }
        return report("I1", rounds: rounds, account, control: control)
    }

    /// I2: a device that starts anonymously and a device with locations are killed while another process locks the queue
    /// file. Control: the write-ahead log is not written.
    static func busy(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        let faults = try Library.build("Torture/Faults/faults.c", in: workshop.directory)
        func hold(_ directory: URL, _ instance: String = "default") throws -> () -> Void {
            let folder = directory.appendingPathComponent(instance)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let database = try Database(path: folder.appendingPathComponent("queue.sqlite").path)
            try database.rows("BEGIN EXCLUSIVE")
            return { _ = try? database.rows("ROLLBACK") }
        }
        func run(_ name: String, _ milliseconds: ClosedRange<Int>, _ environment: [String: String] = [:])
            async throws -> Account
        {
            try await round(
                workshop, name, beginsAnonymously: true, milliseconds: milliseconds, environment: environment,
                meanwhile: { try hold($0) })
                + locations(workshop, "\(name)-locations", milliseconds, environment) {
                    try hold($0, "locations")
                }
        }
        var (account, control) = (Account(), Account())
        for number in 0..<rounds { account = account + (try await run("busy-\(number)", 20...400)) }
        for number in 0..<3 {
            control =
                control
                + (try await run(
                    "busy-control-\(number)", 300...400,
                    ["LD_PRELOAD": faults, "FAULT_DROP": "/incoming-"]))
        }
        return report("I2", rounds: rounds, account, control: control)
    }

    /// Like `round`, for a device that records locations.
    private static func locations(
        _ workshop: Workshop, _ name: String, _ milliseconds: ClosedRange<Int>,
        _ environment: [String: String],
        meanwhile: (URL) throws -> () -> Void
    ) async throws -> Account {
        let directory = workshop.directory.appendingPathComponent(name)
        let journal = workshop.directory.appendingPathComponent("\(name).journal").path
        let end = try meanwhile(directory)
        let device = try workshop.start(
            ["location-device", directory.path, journal], environment: environment)
        try await Task.sleep(nanoseconds: UInt64(Int.random(in: milliseconds, using: &dice)) * 1_000_000)
        workshop.kill(device)
        end()
        let client = try LocationDevice.client(directory)
        let kept = try await client.count()
        await client.close()
        let acknowledged = try Journal.lines(journal).count { $0.hasPrefix("acknowledged") }
        return Account(acknowledged: acknowledged, lost: max(0, acknowledged - kept))
    }

    /// I4: from a random call on, 1 to 20 calls of fsync or all calls fail, and then the power fails. Control: fsync
    /// succeeds and does nothing.
    static func fsync(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        let faults = try Library.build("Torture/Faults/faults.c", in: workshop.directory)
        let power = try PowerModel.library(in: workshop.directory)
        func run(_ name: String, environment: [String: String]) async throws -> Account {
            let disk = workshop.directory.appendingPathComponent(name)
            let image = workshop.directory.appendingPathComponent("\(name)-image")
            try FileManager.default.createDirectory(at: image, withIntermediateDirectories: true)
            return try await round(
                workshop, name, beginsAnonymously: false, milliseconds: 50...400,
                environment: environment.merging(["PF_DIR": disk.path, "PF_IMG": image.path]) { _, new in new
                },
                image: image)
        }
        var (account, control) = (Account(), Account())
        for number in 0..<rounds {
            account =
                account
                + (try await run(
                    "fsync-\(number)",
                    environment: [
                        "LD_PRELOAD": power, "PF_FAIL_AFTER": "\(Int.random(in: 1...60, using: &dice))",
                        "PF_FAIL_COUNT": "\([Int.random(in: 1...20, using: &dice), Int.max][number % 2])",
                    ]))
        }
        for number in 0..<3 {
            control =
                control
                + (try await run(
                    "fsync-control-\(number)",
                    environment: ["LD_PRELOAD": "\(faults) \(power)", "FAULT_FSYNC": "lie"]))
        }
        return report("I4", rounds: rounds, account, control: control)
    }

    /// I3: a process on a slow disk is stopped (SIGSTOP) at a random moment. Another process on the same queue must
    /// sign its own user out and close. Control: locks without a time limit.
    static func stopped(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        let faults = try Library.build("Torture/Faults/faults.c", in: workshop.directory)
        let slow = try Library.build("Torture/Faults/slow-fsync.c", in: workshop.directory)
        /// Returns the seconds that the other process took; nil if it did not end in time.
        @Sendable func run(_ name: String, environment: [String: String]) async throws -> TimeInterval? {
            let directory = workshop.directory.appendingPathComponent(name)
            let holder = try workshop.start(
                [
                    "identity-device", directory.path,
                    workshop.directory.appendingPathComponent("\(name).journal").path, "user",
                    "\(Int.max)",
                ],
                environment: ["LD_PRELOAD": slow, "SLOW_FSYNC_MS": "50"])
            try await Task.sleep(nanoseconds: UInt64.random(in: 50_000_000...600_000_000, using: &dice))
            kill(holder.processIdentifier, SIGSTOP)
            let start = SystemClock().uptime
            let other = try workshop.start(["leaving-device", directory.path], environment: environment)
            while other.isRunning, SystemClock().uptime - start < 30 {
                try await Task.sleep(nanoseconds: 50_000_000)
            }
            let duration = other.isRunning ? nil : SystemClock().uptime - start
            workshop.kill(other)
            kill(holder.processIdentifier, SIGCONT)
            workshop.kill(holder)
            return duration
        }
        func durations(_ count: Int, _ name: String, environment: [String: String]) async throws
            -> [TimeInterval?]
        {
            try await withThrowingTaskGroup(of: TimeInterval?.self) { group in
                var durations: [TimeInterval?] = []
                // Four at once, because they mostly wait.
                for number in 0..<count {
                    if number >= 4, let duration = try await group.next() { durations.append(duration) }
                    group.addTask { try await run("\(name)-\(number)", environment: environment) }
                }
                for try await duration in group { durations.append(duration) }
                return durations
            }
        }
        let ours = try await durations(rounds, "stop", environment: [:])
        let control = try await durations(
            12, "stop-control", environment: ["LD_PRELOAD": faults, "FAULT_BLOCKING_LOCKS": "1"])
        let hung = ours.count { $0 == nil }
        let hungControls = control.count { $0 == nil }
        let isGood = hung == 0 && hungControls > 0
        let longest = ours.compactMap(\.self).max() ?? 0
        print(
            "I3: \(isGood ? "ok" : "FAILED"): \(rounds) stops, \(hung) processes hung, longest "
                + String(format: "%.1f s", longest) + "; control: \(hungControls) of \(control.count) hung")
        return isGood
    }
}
