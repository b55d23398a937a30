internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel

/// Connections that only read one file; a gateway may write it. Each is opened when it is needed and used again.
final class SQLiteReaders: SQLReader {
    let path: String
    /// The most that stay open while nobody reads.
    private let mostIdle: Int
    private let busyTimeoutMilliseconds: Int32
    /// Nil once it is closed.
    private let idle = Lock<[Connection]?>([])

    // Whoever has taken one out of `idle` has it alone.
    private struct Connection: @unchecked Sendable {
        let sqlite: SQLiteConnection
    }

    init(path: String, mostIdle: Int = 4, busyTimeoutMilliseconds: Int32 = 5_000) {
        self.path = path
        self.mostIdle = mostIdle
        self.busyTimeoutMilliseconds = busyTimeoutMilliseconds
    }

    /// Closes what nobody reads with; later reads fail.
    func close() {
        idle.withLock { $0 = nil }
    }

    var isThere: Bool { FileManager.default.fileExists(atPath: path) }

    /// Reads on a connection of its own. Throws `storage`, and what `body` throws of the gateway's errors.
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
            // One that has failed is not used again.
            let value = try body(connection.sqlite)
            idle.withLock { if $0?.count ?? .max < mostIdle { $0?.append(connection) } }
            return value
        }
    }

    func read<Value>(_ body: (any SQLConnection) throws -> Value) throws(GatewayError) -> Value {
        try withConnection(body)
    }
}
