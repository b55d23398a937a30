package import CountersignCore
package import CountersignSQLite
internal import Foundation
package import GatewayModel

/// A data directory as the source or target of a copy. Holds the lock on the directory, so that no gateway can start.
package final class FolderCopy: CopyEndpoint {
    private static let events = "events.sqlite"

    private let folder: DataDirectory
    private let lock: DataDirectoryLock
    private var files: BytewiseDictionary<SQLiteConnection> = [:]
    /// Grouped by file, with the events last.
    package private(set) var tables: [CopyTable] = []

    /// Throws `notFound` if there is no data, `conflict` for an unfinished copy or restore, `alreadyRunning` if in use.
    package convenience init(from path: String) throws(GatewayError) {
        guard FileManager.default.fileExists(atPath: path + "/control.sqlite") else {
            throw GatewayError(.notFound, "\(path) is not a data directory: it has no control.sqlite")
        }
        try UnfinishedCopy.check(path)
        try self.init(try DataDirectory(path: path))
        try GatewayError.storing {
            // Updates the counters that the last gateway left incomplete.
            try EventLogWriter(path: folder.path + "/" + Self.events).close()
            try open()
        }
    }

    /// Throws `conflict` when the folder holds anything except an unfinished copy of this log.
    package convenience init(to path: String, copyOf log: CopiedLog) throws(GatewayError) {
        let markerFile = UnfinishedCopy.path(in: path)
        let text = log.id.hexadecimal + "\n"
        let found = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        if let kept = FileManager.default.contents(atPath: markerFile) {
            guard kept.isEmpty || kept == Data(text.utf8) else {
                throw GatewayError(
                    .conflict, "\(path) contains an unfinished copy of another source; give a new folder")
            }
        } else if !found.allSatisfy({ $0 == "gateway.lock" }) {
            throw GatewayError(.conflict, "\(path) is not empty; give a new folder")
        }
        try self.init(try DataDirectory(path: path))
        try GatewayError.storing {
            try Data(text.utf8).write(to: URL(fileURLWithPath: markerFile))
            guard synchronizeFile(markerFile) == 0, synchronizeFile(path) == 0 else {
                throw GatewayError(.storage, "cannot write \(markerFile)")
            }
            try makeEvents()
            try open()
            try connection(Self.events).execute(
                "CREATE TABLE IF NOT EXISTS \(UnfinishedCopy.table) (app_id TEXT, seq INTEGER)")
        }
    }

    private init(_ folder: DataDirectory) throws(GatewayError) {
        self.folder = folder
        lock = try folder.lock()
    }

    /// Creates the file without ``EventLogWriter``, which would build an index before the events are copied.
    private func makeEvents() throws {
        let events = try SQLiteConnection(path: try folder.file(Self.events))
        try events.execute(EventLogSchema.pageSize + "PRAGMA journal_mode = WAL")
        try EventLogSchema.migrate(events)
    }

    private func open() throws {
        let storage = SQLiteStorage(folder: folder)
        _ = try storage.openControl(as: .schedule)
        _ = try storage.openSecrets()
        _ = try storage.openTokenFamilies(refreshKey: [])
        _ = try AnalyticsStore.file(try folder.file(AnalyticsStore.fileName), at: Date())
        _ = try storage.openDeliveries()
        _ = try EarlierStreams(path: try folder.file(EarlierStreams.fileName))
        for file in [
            "control.sqlite", "token-keys.sqlite", "tokens.sqlite", AnalyticsStore.fileName,
            DeliveryStore.fileName, EarlierStreams.fileName, Self.events,
        ] {
            let sqlite = try SQLiteConnection(path: folder.path + "/" + file)
            try sqlite.execute("PRAGMA synchronous = NORMAL")
            files[file] = sqlite
            tables += try CopyTable.all(in: file, sqlite)
        }
    }

    private func connection(_ file: String) throws -> SQLiteConnection {
        guard let connection = files[file] else { throw SQLiteError.damaged("\(file) is not open") }
        return connection
    }

    /// The directory's lock already prevents gateways from starting.
    package func checkStopped() {}

    package func log() throws -> CopiedLog {
        let sqlite = try connection(Self.events)
        guard let state = try EventLogState.read(sqlite) else {
            throw SQLiteError.damaged("no log of events")
        }
        let last = try sqlite.first("SELECT max(seq) FROM event") { $0.int64(0) } ?? 0
        return CopiedLog(id: state.id, head: max(state.next - 1, last))
    }

    package func numbers() throws -> BytewiseDictionary<Int64> {
        var numbers: BytewiseDictionary<Int64> = [:]
        for (_, sqlite) in files where try hasNumbers(sqlite) {
            for (name, number) in try sqlite.all(
                "SELECT name, seq FROM sqlite_sequence", row: { ($0.text(0), $0.int64(1)) })
            {
                numbers[name] = number
            }
        }
        return numbers
    }

    private func hasNumbers(_ sqlite: SQLiteConnection) throws -> Bool {
        try sqlite.first("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'") { _ in true } == true
    }

    package func key(of table: CopyTable) -> [String] { table.key }

    package func rows(of table: CopyTable, after lastKey: [SQLValue], most: CopyGroup) throws -> [[SQLValue]]
    {
        var rows: [[SQLValue]] = []
        var bytes = 0
        let source = table.name == CopyTable.events ? EventLogSchema.view : "\"\(table.name)\""
        try connection(table.file).each(
            table.page(from: source, by: table.key, after: lastKey, most: most.rows), lastKey
        ) { row in
            let values = table.values(row)
            rows.append(values)
            bytes += values.reduce(0) { $0 + $1.bytes }
            return bytes < most.bytes
        }
        return rows
    }

    package func begin(_ log: CopiedLog, _ tables: [CopyTable]) {}

    package func lastKey(in table: CopyTable, by key: [String]) throws -> [SQLValue] {
        try connection(table.file).lastKey(of: table, by: key)
    }

    package func write(_ rows: [[SQLValue]], to table: CopyTable) throws {
        let sqlite = try connection(table.file)
        var names = table.list
        var values = table.columns.map { column in
            // Sets the size of a new customer to zero, because triggers add the sizes of the customer's other rows.
            table.name == CopyTable.customers && column.name == "bytes" ? "0 * ?" : "?"
        }
        if table.name == "event_consumer" {
            names += ", generation"
            values.append("random() & \(Int64.max >> 1)")
        }
        let isEvents = table.name == CopyTable.events
        if isEvents {
            names += ", key_number, request_uuid"
            values += ["?", "?"]
        }
        let changes = table.columns.map { "\"\($0.name)\" = excluded.\"\($0.name)\"" }
        let conflict =
            table.isWrittenWhole
            ? " ON CONFLICT (\(CopyTable.quoted(table.key))) DO UPDATE SET \(changes.joined(separator: ", "))"
            : ""
        let statement = try sqlite.cached(
            "INSERT INTO \"\(table.name)\" (\(names)) VALUES (\(values.joined(separator: ", ")))\(conflict)")
        defer { statement.reset() }
        try sqlite.transaction {
            var keys = EventKeys()
            for row in rows {
                try statement.bind(isEvents ? try Self.shortened(row, of: table, &keys, sqlite) : row)
                while try statement.step() {}
                statement.rewind()
            }
            guard isEvents, let last = rows.last else { return }
            try sqlite.execute("DELETE FROM \(UnfinishedCopy.table)")
            try sqlite.run(
                "INSERT INTO \(UnfinishedCopy.table) (app_id, seq) VALUES (?1, ?2)",
                last[table.place(of: "app_id")], last[table.place(of: "seq")])
        }
    }

    /// Converts an event's row to the stored form, with the number of its key and its request id as bytes.
    private static func shortened(
        _ row: [SQLValue], of table: CopyTable, _ keys: inout EventKeys, _ sqlite: SQLiteConnection
    ) throws -> [SQLValue] {
        var row = row + [.null, .null]
        let (key, request) = (table.place(of: "key_id"), table.place(of: "request_id"))
        if case .text(let id) = row[key], case .text(let appID) = row[table.place(of: "app_id")] {
            row[row.count - 2] = .integer(try keys.number(of: id, in: appID, sqlite))
            row[key] = .null
        }
        if case .text(let id) = row[request], let bytes = UUIDText.bytes(of: id) {
            row[row.count - 1] = .blob(bytes)
            row[request] = .null
        }
        return row
    }

    package func complete(_ log: CopiedLog, _ numbers: BytewiseDictionary<Int64>, _ tables: [CopyTable])
        throws
    {
        for table in tables {
            let sqlite = try connection(table.file)
            guard table.name != CopyTable.events, let number = numbers[table.name], try hasNumbers(sqlite)
            else { continue }
            try sqlite.transaction {
                try sqlite.run("DELETE FROM sqlite_sequence WHERE name = ?1", .text(table.name))
                try sqlite.run(
                    "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", .text(table.name),
                    .integer(number))
            }
        }
        let sqlite = try connection(Self.events)
        try sqlite.transaction {
            try sqlite.run(
                "UPDATE event_log SET id = ?1, next_seq = ?2", .blob(log.id), .integer(log.head + 1))
            try sqlite.execute(
                """
                UPDATE counted SET seq = coalesce((SELECT max(seq) FROM event), 0);
                INSERT OR IGNORE INTO app_user
                    SELECT DISTINCT app_id, user_id FROM event WHERE user_id IS NOT NULL
                """)
        }
        try EventLogWriter(path: folder.path + "/" + Self.events).close()
    }

    package func finish() throws {
        // Makes all data durable before deleting the file that marks an unfinished copy. Drops the progress table
        // last, because an interrupted copy without this table starts again.
        for (_, sqlite) in files {
            try sqlite.execute("PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)")
        }
        guard unlink(UnfinishedCopy.path(in: folder.path)) == 0, synchronizeFile(folder.path) == 0 else {
            throw GatewayError(.storage, "cannot write \(folder.path)")
        }
        try connection(Self.events).execute("DROP TABLE \(UnfinishedCopy.table)")
    }
}

extension SQLValue {
    fileprivate var bytes: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .blob(let bytes): bytes.count
        case .null, .integer, .real: 0
        }
    }
}

extension CopyTable {
    package func place(of name: String) -> Int { columns.firstIndex { $0.name == name } ?? 0 }
}
