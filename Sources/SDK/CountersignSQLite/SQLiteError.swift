internal import CSQLite

/// An error reported by SQLite, without bound values.
package struct SQLiteError: Error, CustomStringConvertible {
    package let extendedCode: Int32
    package let message: String
    package let sql: String?

    package init(extendedCode: Int32, message: String, sql: String? = nil) {
        self.extendedCode = extendedCode
        self.message = message
        self.sql = sql
    }

    /// The last error of a connection. A failed write over a quota becomes `SQLITE_FULL`, like one on a full disk.
    init(of connection: OpaquePointer, sql: String?) {
        let code = sqlite3_extended_errcode(connection)
        let isOverQuota = code == Self.failedWrite && sqlite3_system_errno(connection) == quotaErrorNumber
        self.init(
            extendedCode: isOverQuota ? SQLITE_FULL : code,
            message: isOverQuota ? "the disk quota is full" : String(cString: sqlite3_errmsg(connection)),
            sql: sql)
    }

    package var code: Int32 { extendedCode & 0xFF }

    /// Whether the disk or a quota is full, also for the shared memory of a write-ahead log.
    package var isFull: Bool { code == SQLITE_FULL || extendedCode == Self.sharedMemorySize }

    /// `SQLITE_IOERR_WRITE` and `SQLITE_IOERR_SHMSIZE`, macros that Swift does not import.
    private static let failedWrite = SQLITE_IOERR | 3 << 8
    private static let sharedMemorySize = SQLITE_IOERR | 19 << 8

    /// Whether another connection holds a lock, so that the call can be retried.
    package var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }

    /// Whether the disk failed. The outcome of the last transaction is unknown until the file is opened again.
    package var isInputOutput: Bool { code == SQLITE_IOERR }

    /// Whether the file cannot be opened or written: it is missing, moved or read-only.
    package var isUnwritable: Bool {
        code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_PERM
    }

    /// An error for a file that SQLite can read, but whose content is inconsistent.
    package static func damaged(_ message: String) -> SQLiteError {
        SQLiteError(extendedCode: SQLITE_CORRUPT, message: message)
    }

    package var isConstraint: Bool { code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH }

    package var isCorrupt: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }

    package var description: String {
        let statement = sql.map { " in: \($0)" } ?? ""
        return "SQLite error \(extendedCode): \(message)\(statement)"
    }
}
