internal import Foundation

/// Compares the events recorded by the devices with the gateway's database.
struct DemoCheck: Sendable, Equatable {
    struct Stored: Sendable, Equatable {
        let type: String
        let userID: String
        /// The event's number in the replay; nil for an identify event.
        let number: Int?
    }

    private(set) var missing = 0
    /// Events that are stored more than once.
    private(set) var repeated = 0
    /// Events that were not recorded, or were recorded for another user.
    private(set) var unknown = 0
    private(set) var forged = 0
    /// Events that are stored exactly once, as recorded.
    private(set) var exact = 0

    init(stored: [Stored], rows: [DemoPlan.Row], identified: [String: Int]) {
        var expected: [Int: String] = [:]
        for row in rows { expected[row.number] = row.event.userID }
        var seen: [Int: Int] = [:]
        var identities: [String: Int] = [:]
        for row in stored {
            if row.userID == DemoPlan.forgedUser {
                forged += 1
            } else if row.type == "identify" {
                identities[row.userID, default: 0] += 1
            } else if let number = row.number, expected[number] == row.userID {
                seen[number, default: 0] += 1
            } else {
                unknown += 1
            }
        }
        missing = expected.count - seen.count
        repeated = seen.values.reduce(0) { $0 + $1 - 1 }
        exact = seen.values.filter { $0 == 1 }.count
        for user in Set(identities.keys).union(identified.keys) {
            let surplus = identities[user, default: 0] - identified[user, default: 0]
            if surplus > 0 { repeated += surplus } else { missing -= surplus }
        }
    }

    /// Reads the events of an app with the `sqlite3` command, independently of the gateway. Throws `unavailable`
    /// if `sqlite3` is missing, and `failed` if it cannot read the file.
    static func read(database: String, appID: String) throws(CommandError) -> [Stored] {
        let query = """
            SELECT type, user_id, coalesce(json_extract(body, '$.properties.\(DemoDevice.rowProperty)'), '')
            FROM event WHERE app_id = '\(appID)' ORDER BY seq
            """
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["sqlite3", "-readonly", "-batch", "-separator", "\t", database, query]
        let output = Pipe()
        process.standardOutput = output
        let data: Data
        do {
            try process.run()
            data = try output.fileHandleForReading.readToEnd() ?? Data()
        } catch {
            throw CommandError(.unavailable, "cannot run sqlite3")
        }
        process.waitUntilExit()
        // `env` ends with 127 if it does not find the program.
        if process.terminationStatus == 127 { throw CommandError(.unavailable, "sqlite3 is not installed") }
        guard process.terminationStatus == 0 else {
            throw CommandError(.failed, "sqlite3 ended with \(process.terminationStatus) on \(database)")
        }
        return try stored(in: String(decoding: data, as: UTF8.self))
    }

    /// Parses lines of tab-separated type, user and number.
    static func stored(in text: String) throws(CommandError) -> [Stored] {
        var rows: [Stored] = []
        for line in text.split(separator: "\n") {
            let cells = line.split(separator: "\t", omittingEmptySubsequences: false)
            guard cells.count == 3 else {
                throw CommandError(.failed, "sqlite3 printed an unexpected line")
            }
            rows.append(Stored(type: String(cells[0]), userID: String(cells[1]), number: Int(cells[2])))
        }
        return rows
    }
}
