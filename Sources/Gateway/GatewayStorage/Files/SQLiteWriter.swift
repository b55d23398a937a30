internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel

/// A SQLite file with one connection, which a lock guards.
final class SQLiteWriter: SQLDatabase {
    /// Nil while a full disk prevents opening the file.
    private let connection: Lock<Connection?>
    private let open: @Sendable () throws -> SQLiteConnection

    // `Lock` guards the connection, which has no lock of its own.
    private struct Connection: @unchecked Sendable {
        let sqlite: SQLiteConnection
    }

    /// The pragmas for files whose last commits may be lost in a power failure, but not in a crash of the process.
    static let shortLog = """
        PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 4194304
        """

    /// On a full disk, each use tries to open the file again, so that a gateway can start and recovers later.
    init(
        path: String, pragmas: String, _ migrations: [String], from oldest: Int = 1, at now: Date
    ) throws(GatewayError) {
        open = {
            let sqlite = try SQLiteConnection(path: path)
            try sqlite.execute(pragmas)
            try Schema.migrate(sqlite, migrations, from: oldest, at: now)
            return sqlite
        }
        do {
            connection = Lock(Connection(sqlite: try open()))
        } catch let error as SQLiteError where error.isFull {
            connection = Lock(nil)
        } catch {
            throw (error as? GatewayError) ?? GatewayError(.storage, "cannot open \(path): \(error)")
        }
    }

    private func use<Result>(_ body: (SQLiteConnection) throws -> Result) throws -> Result {
        try connection.withLock { connection in
            let sqlite = try connection?.sqlite ?? open()
            connection = Connection(sqlite: sqlite)
            return try body(sqlite)
        }
    }

    func read<Result>(_ body: (any SQLConnection) throws -> Result) throws(GatewayError) -> Result {
        try GatewayError.storing { try use { try body($0) } }
    }

    func transaction<Result>(
        alone: Bool, _ body: (any SQLConnection) throws -> Result
    ) throws -> Result {
        try use { sqlite in try sqlite.transaction { try body(sqlite) } }
    }

    func version() throws(GatewayError) -> Int64 {
        try GatewayError.storing { try use { try $0.dataVersion() } }
    }
}
