internal import CSQLite3

/// Opens a database with SQLite directly, so that results do not depend on the code under test.
final class Database {
    private let handle: OpaquePointer

    /// Creates a missing file, except with `isReadOnly`.
    init(path: String, isReadOnly: Bool = false) throws {
        var handle: OpaquePointer?
        let flags = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        guard sqlite3_open_v2(path, &handle, flags, nil) == SQLITE_OK, let handle else {
            sqlite3_close(handle)
            throw TortureError("cannot open \(path)")
        }
        sqlite3_busy_timeout(handle, 5_000)
        self.handle = handle
    }

    deinit { sqlite3_close_v2(handle) }

    /// Runs a statement with a value for each `?`. Returns its rows, each column as text; null is empty.
    @discardableResult
    func rows(_ sql: String, _ values: String...) throws -> [[String]] {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else { throw failure }
        defer { sqlite3_finalize(statement) }
        for (index, value) in values.enumerated() {
            // SQLite copies the text (SQLITE_TRANSIENT, which Swift does not import).
            sqlite3_bind_text(
                statement, Int32(index + 1), value, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
        }
        var rows: [[String]] = []
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                rows.append(
                    (0..<sqlite3_column_count(statement)).map { column in
                        sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
                    })
            case SQLITE_DONE: return rows
            default: throw failure
            }
        }
    }

    private var failure: TortureError { TortureError(String(cString: sqlite3_errmsg(handle))) }
}
