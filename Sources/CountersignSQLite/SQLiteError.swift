internal import CSQLite

/// What SQLite reported, in its own words and codes.
///
/// Bound values are never part of it.
package struct SQLiteError: Error, CustomStringConvertible {
    /// The extended result code, such as `SQLITE_IOERR_FSYNC`.
    package let extendedCode: Int32
    /// SQLite's own message.
    package let message: String
    /// The statement that failed, with its placeholders, where there was one.
    package let sql: String?

    package init(extendedCode: Int32, message: String, sql: String? = nil) {
        self.extendedCode = extendedCode
        self.message = message
        self.sql = sql
    }

    /// The primary result code, such as `SQLITE_BUSY`.
    package var code: Int32 { extendedCode & 0xFF }

    /// Whether the disk or its quota is full. Includes a failure to create the shared-memory file of a write-ahead log.
    package var isFull: Bool { code == SQLITE_FULL || extendedCode == Self.sharedMemorySize }

    /// `SQLITE_IOERR_SHMSIZE`, a macro that Swift does not import.
    private static let sharedMemorySize = SQLITE_IOERR | 19 << 8

    /// True when another connection holds the lock: worth another try.
    package var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }

    /// True when the disk failed; what the last transaction did is unknown until the file is opened again.
    package var isInputOutput: Bool { code == SQLITE_IOERR }

    /// True when the file cannot be opened or written: not there any more, moved, or read-only.
    package var isUnwritable: Bool {
        code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_PERM
    }

    /// Says that a file contradicts itself although SQLite has read it.
    package static func damaged(_ message: String) -> SQLiteError {
        SQLiteError(extendedCode: SQLITE_CORRUPT, message: message)
    }

    /// True when a row would break a rule of the schema.
    package var isConstraint: Bool { code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH }

    /// True when the file is damaged or is no database at all.
    package var isCorrupt: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }

    package var description: String {
        let statement = sql.map { " in: \($0)" } ?? ""
        return "SQLite error \(extendedCode): \(message)\(statement)"
    }
}
