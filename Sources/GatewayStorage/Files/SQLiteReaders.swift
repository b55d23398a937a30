internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel

/// Connections that only read one file; a gateway may write it. Each is opened when it is needed and used again.
final class SQLiteReaders: Sendable {
    /// The most that stay open while nobody reads.
    private static let mostIdle = 4

    let path: String
    private let idle = Lock<[Connection]>([])

    // Whoever has taken one out of `idle` has it alone.
    private struct Connection: @unchecked Sendable {
        let sqlite: SQLiteConnection
    }

    init(path: String) {
        self.path = path
    }

    /// False until a gateway has run on the folder.
    var isThere: Bool { FileManager.default.fileExists(atPath: path) }

    /// Reads on a connection of its own.
    func read<Value>(_ body: (SQLiteConnection) throws -> Value) throws(GatewayError) -> Value {
        try GatewayError.storing {
            let connection =
                try idle.withLock { $0.popLast() }
                ?? Connection(sqlite: SQLiteConnection(path: path, mode: .readOnly))
            // One that has failed is not used again.
            let value = try body(connection.sqlite)
            idle.withLock { if $0.count < Self.mostIdle { $0.append(connection) } }
            return value
        }
    }
}
