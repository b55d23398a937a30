internal import CSQLite

/// A connection to a SQLite file. Only one thread or actor may use it at a time, because it has no lock.
package final class SQLiteConnection {
    package enum Mode {
        case readWriteCreate
        case readOnly
    }

    private let handle: OpaquePointer
    private let busyTimeoutMilliseconds: Int32
    private let waitsOnceForLock: Bool
    /// Whether the last transaction timed out waiting for another connection's lock; set only with `waitsOnceForLock`.
    package private(set) var isLockHeld = false
    private static let heldLockMilliseconds: Int32 = 20
    /// The cache is emptied at this number of statements. The gateway's event writer uses fewer.
    static let mostStatements = 256
    private(set) var cache: [String: SQLiteStatement] = [:]
    package let path: String

    /// Throws `SQLiteError` if the file cannot be opened. For a file that is not a database, the first statement fails.
    /// `keepsJournal` saves a flush of the directory for each transaction, on Linux only (`KeptJournal`). With
    /// `waitsOnceForLock`, a time-out for the lock shortens the time-out of later transactions to 20 ms, until one
    /// of them gets the lock.
    package init(
        path: String, mode: Mode = .readWriteCreate, keepsJournal: Bool = false,
        busyTimeoutMilliseconds: Int32 = 5_000, waitsOnceForLock: Bool = false
    ) throws(SQLiteError) {
        let access =
            switch mode {
            case .readWriteCreate: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            case .readOnly: SQLITE_OPEN_READONLY
            }
        var opened: OpaquePointer?
        #if os(Linux)
            let vfs = keepsJournal ? KeptJournal.vfs : nil
        #else
            let vfs: String? = nil
        #endif
        let code = sqlite3_open_v2(path, &opened, access | SQLITE_OPEN_NOMUTEX, vfs)
        guard code == SQLITE_OK, let opened else {
            let message = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            let extendedCode = opened.map { sqlite3_extended_errcode($0) } ?? code
            sqlite3_close_v2(opened)
            throw SQLiteError(extendedCode: extendedCode, message: "\(message) (\(path))")
        }
        handle = opened
        self.path = path
        self.busyTimeoutMilliseconds = busyTimeoutMilliseconds
        self.waitsOnceForLock = waitsOnceForLock
        sqlite3_busy_timeout(opened, busyTimeoutMilliseconds)
    }

    /// Stops SQLite from counting its memory, which takes a lock for each allocation. Concerns the whole
    /// process. Has no effect once a connection was opened.
    package static func disableMemoryStatistics() { _ = countersign_sqlite_without_statistics() }

    deinit {
        cache.removeAll()
        sqlite3_close_v2(handle)
    }

    package func execute(_ sql: String) throws(SQLiteError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw lastError(sql: sql) }
    }

    package func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(handle, sql, -1, 0, &statement, nil)
        guard code == SQLITE_OK, let statement else { throw lastError(sql: sql) }
        return SQLiteStatement(handle: statement, connection: handle, sql: sql)
    }

    /// Returns a statement that is reset and has no bindings.
    package func cached(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
        if let statement = cache[sql] {
            statement.reset()
            return statement
        }
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement else { throw lastError(sql: sql) }
        let made = SQLiteStatement(handle: statement, connection: handle, sql: sql)
        // Emptying the cache is safe, because callers retain the statements in use.
        if cache.count >= Self.mostStatements { cache = [:] }
        cache[sql] = made
        return made
    }

    package func run(_ sql: String, _ values: SQLValue...) throws(SQLiteError) {
        let statement = try cached(sql)
        defer { statement.reset() }
        try statement.bind(values)
        while try statement.step() {}
    }

    package func first<Row>(
        _ sql: String, _ values: SQLValue..., row: (SQLiteStatement) throws(SQLiteError) -> Row
    ) throws(SQLiteError) -> Row? {
        let statement = try cached(sql)
        defer { statement.reset() }
        try statement.bind(values)
        guard try statement.step() else { return nil }
        return try row(statement)
    }

    package func all<Row>(
        _ sql: String, _ values: SQLValue..., row: (SQLiteStatement) throws(SQLiteError) -> Row
    ) throws(SQLiteError) -> [Row] {
        try all(sql, values, row: row)
    }

    package func all<Row>(
        _ sql: String, _ values: [SQLValue], row: (SQLiteStatement) throws(SQLiteError) -> Row
    ) throws(SQLiteError) -> [Row] {
        let statement = try cached(sql)
        defer { statement.reset() }
        try statement.bind(values)
        var rows: [Row] = []
        while try statement.step() { rows.append(try row(statement)) }
        return rows
    }

    /// Runs `body` in a `BEGIN IMMEDIATE` transaction, and rolls back when `body` or the commit fails.
    package func transaction<Result>(
        _ body: () throws -> Result
    ) throws -> Result {
        do {
            try run("BEGIN IMMEDIATE")
            setLockHeld(false)
        } catch {
            if error.isBusy { setLockHeld(true) }
            throw error
        }
        do {
            let result = try body()
            try run("COMMIT")
            return result
        } catch {
            // A failed COMMIT may have ended the transaction already (disk full, I/O error).
            if isInTransaction { try? execute("ROLLBACK") }
            throw error
        }
    }

    private func setLockHeld(_ isHeld: Bool) {
        guard waitsOnceForLock, isHeld != isLockHeld else { return }
        isLockHeld = isHeld
        sqlite3_busy_timeout(handle, isHeld ? Self.heldLockMilliseconds : busyTimeoutMilliseconds)
    }

    private static let copiedPages: Int32 = 256

    /// Copies a snapshot into a new file, which is unusable after an error. Other connections may write meanwhile, but
    /// the write-ahead log grows until the copy ends. `step` may abort the copy by throwing.
    package func copy(to path: String, step: () throws -> Void = {}) throws {
        let target = try SQLiteConnection(path: path)
        // Holds one snapshot. Otherwise SQLite restarts the copy after each commit of another connection.
        try execute("BEGIN")
        defer { try? execute("ROLLBACK") }
        _ = try first("SELECT 1 FROM sqlite_schema") { _ in true }
        guard let backup = sqlite3_backup_init(target.handle, "main", handle, "main") else {
            throw target.lastError(sql: nil)
        }
        var code = SQLITE_OK
        do {
            // `sqlite3_backup_step` has already returned any error.
            defer { sqlite3_backup_finish(backup) }
            while code == SQLITE_OK {
                code = sqlite3_backup_step(backup, Self.copiedPages)
                if code == SQLITE_OK { try step() }
            }
        }
        guard code == SQLITE_DONE else {
            throw SQLiteError(extendedCode: code, message: String(cString: sqlite3_errstr(code)), sql: nil)
        }
        // A copy is a single file, without a write-ahead log.
        try target.execute("PRAGMA journal_mode = DELETE")
    }

    /// Rewrites and flushes the write-ahead log, so that commits recovered after a failed flush are durable.
    package func rewriteLog() throws {
        try transaction {
            let failure = rewriteFile(path + "-wal")
            guard failure == 0 else {
                throw SQLiteError(
                    extendedCode: SQLITE_IOERR, message: "cannot flush \(path)-wal (error \(failure))")
            }
        }
    }

    package var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Rows changed by the last `INSERT`, `UPDATE` or `DELETE`.
    package var changes: Int { Int(sqlite3_changes(handle)) }

    package var lastInsertRowID: Int64 { sqlite3_last_insert_rowid(handle) }

    /// The number of virtual machine operations that the cached statements have run. Equal on every computer.
    package var virtualMachineSteps: Int { cache.values.reduce(0) { $0 + $1.virtualMachineSteps } }

    /// A number that changes when another connection has committed (`PRAGMA data_version`).
    package func dataVersion() throws(SQLiteError) -> Int64 {
        try first("PRAGMA data_version") { row throws(SQLiteError) in row.int64(0) } ?? 0
    }

    /// Applies the missing migrations, each in its own transaction, and stores the version in `PRAGMA user_version`.
    /// The first migration creates the version `oldest`. The file must be empty, or have this version or a later one.
    package func migrate(
        _ migrations: [String], from oldest: Int = 1, didApply: (Int) throws -> Void = { _ in }
    ) throws {
        let found = try userVersion()
        for (version, migration) in zip(oldest..., migrations) where version > found {
            try transaction {
                // Another process may have migrated before this transaction began.
                guard try userVersion() < version else { return }
                try execute(migration)
                try execute("PRAGMA user_version = \(version)")
                try didApply(version)
            }
        }
    }

    package func userVersion() throws(SQLiteError) -> Int {
        try first("PRAGMA user_version") { row throws(SQLiteError) in row.int(0) } ?? 0
    }

    private func lastError(sql: String?) -> SQLiteError { SQLiteError(of: handle, sql: sql) }
}
