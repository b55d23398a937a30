internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel

/// A file that one connection reads and writes, shared behind a lock.
final class SQLiteWriter: SQLDatabase {
    private let connection: Lock<Connection>

    // A connection has no lock of its own; `Lock` gives it one.
    private struct Connection: @unchecked Sendable {
        let sqlite: SQLiteConnection
    }

    /// A log whose last commits may be lost when the machine fails, though not when the process does.
    static let shortLog = """
        PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 4194304
        """

    /// Opens the file, and makes it when it does not exist. Throws `storage`.
    init(
        path: String, pragmas: String, _ migrations: [String], at now: Date
    ) throws(GatewayError) {
        do {
            let sqlite = try SQLiteConnection(path: path)
            try sqlite.execute(pragmas)
            try Schema.migrate(sqlite, migrations, at: now)
            connection = Lock(Connection(sqlite: sqlite))
        } catch {
            throw (error as? GatewayError) ?? GatewayError(.storage, "cannot open \(path): \(error)")
        }
    }

    func read<Result>(_ body: (any SQLConnection) throws -> Result) throws(GatewayError) -> Result {
        try connection.withLock { connection throws(GatewayError) in
            try GatewayError.storing { try body(connection.sqlite) }
        }
    }

    func transaction<Result>(
        alone: Bool, _ body: (any SQLConnection) throws -> Result
    ) throws -> Result {
        try connection.withLock { connection in
            try connection.sqlite.transaction { try body(connection.sqlite) }
        }
    }

    func version() throws(GatewayError) -> Int64 {
        try connection.withLock { connection throws(GatewayError) in
            try GatewayError.storing { try connection.sqlite.dataVersion() }
        }
    }
}
