internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel

/// A pool of read-only connections to a file. Connections are opened on demand and reused.
final class SQLiteReaders: SQLReader {
    let path: String
    private let mostIdle: Int
    private let busyTimeoutMilliseconds: Int32
    /// Nil after ``close()``.
    private let idle = Lock<[Connection]?>([])

    // A connection taken out of `idle` belongs to one thread.
    private struct Connection: @unchecked Sendable {
        let sqlite: SQLiteConnection
    }

    init(path: String, mostIdle: Int = 4, busyTimeoutMilliseconds: Int32 = 5_000) {
        self.path = path
        self.mostIdle = mostIdle
        self.busyTimeoutMilliseconds = busyTimeoutMilliseconds
    }

    /// Closes the idle connections. Later reads fail.
    func close() {
        idle.withLock { $0 = nil }
    }

    /// False for an empty file too. A new file stays empty while the disk is full.
    var isThere: Bool { DiskSpace.size(of: path) > 0 }

    func withConnection<Value>(_ body: (SQLiteConnection) throws -> Value) throws(GatewayError) -> Value {
        try GatewayError.storing {
            let taken = try idle.withLock { idle throws(GatewayError) in
                guard idle != nil else { throw GatewayError(.storage, "\(path) is closed") }
                return idle?.popLast()
            }
            let connection =
                try taken
                ?? Connection(
                    sqlite: SQLiteConnection(
                        path: path, mode: .readOnly, busyTimeoutMilliseconds: busyTimeoutMilliseconds))
            // A connection that has failed is not reused.
            let value = try body(connection.sqlite)
            idle.withLock { if $0?.count ?? .max < mostIdle { $0?.append(connection) } }
            return value
        }
    }

    func read<Value>(_ body: (any SQLConnection) throws -> Value) throws(GatewayError) -> Value {
        try withConnection(body)
    }
}
