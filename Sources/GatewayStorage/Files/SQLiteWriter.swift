internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel

/// The connection that writes a file, shared behind a lock.
final class SQLiteWriter: Sendable {
    private let connection: Lock<Connection>

    // A connection has no lock of its own; `Lock` gives it one.
    private struct Connection: @unchecked Sendable {
        let sqlite: SQLiteConnection
    }

    /// A log whose last commits may be lost when the machine fails, though not when the process does.
    static let shortLog = """
        PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 4194304
        """

    /// Opens the file, and makes it when it is not there. Throws `storage`.
    init(path: String, pragmas: String, _ migrations: [String]) throws(GatewayError) {
        let sqlite = try GatewayError.storing {
            let sqlite = try SQLiteConnection(path: path)
            try sqlite.execute(pragmas)
            try Schema.migrate(sqlite, migrations)
            return sqlite
        }
        connection = Lock(Connection(sqlite: sqlite))
    }

    func read<Result>(_ body: (SQLiteConnection) throws -> Result) throws(GatewayError) -> Result {
        try connection.withLock { connection throws(GatewayError) in
            try GatewayError.storing { try body(connection.sqlite) }
        }
    }

    /// Runs `body` in a transaction: all of it is kept, or nothing.
    func write<Result>(_ body: (SQLiteConnection) throws -> Result) throws(GatewayError) -> Result {
        try read { sqlite in try sqlite.transaction { try body(sqlite) } }
    }
}
