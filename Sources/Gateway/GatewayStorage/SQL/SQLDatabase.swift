package import GatewayModel

/// Read access to a database.
package protocol SQLReader: Sendable {
    /// False when the database does not exist yet, because no gateway has written it.
    var isThere: Bool { get }

    /// Throws `storage`, and rethrows the gateway's errors from `body`.
    func read<Result>(_ body: (any SQLConnection) throws -> Result) throws(GatewayError) -> Result
}

/// A database for one kind of data, such as settings or sessions.
package protocol SQLDatabase: SQLReader {
    /// Runs `body` in a transaction. With `alone`, no other transaction writes this kind of data meanwhile. Otherwise,
    /// an engine may allow concurrent writes, and `body` must lock rows with ``SQLConnection/forUpdate``.
    func transaction<Result>(
        alone: Bool, _ body: (any SQLConnection) throws -> Result
    ) throws -> Result

    /// A number that changes when another connection has committed. Throws `storage`.
    func version() throws(GatewayError) -> Int64
}

extension SQLDatabase {
    package var isThere: Bool { true }

    /// Runs `body` in a transaction. After a conflict, runs `body` again from its start, 5 runs in all at most, so its
    /// side effects must be idempotent.
    package func commit<Result>(
        alone: Bool, _ body: (any SQLConnection) throws -> Result
    ) throws -> Result {
        for _ in 1..<5 {
            do {
                return try transaction(alone: alone, body)
            } catch let error as any StorageError where error.isRetryable {
                continue
            }
        }
        return try transaction(alone: alone, body)
    }

    /// Like ``commit(alone:_:)``, but errors of the engine become `storage`.
    package func write<Result>(
        alone: Bool = true, _ body: (any SQLConnection) throws -> Result
    ) throws(GatewayError) -> Result {
        try GatewayError.storing { try commit(alone: alone, body) }
    }
}
