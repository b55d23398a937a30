package import GatewayModel

/// A database of one kind of things, read.
package protocol SQLReader: Sendable {
    /// False while there is nothing to read, because no gateway has run yet.
    var isThere: Bool { get }

    /// Reads on one connection. Throws `storage`, and what `body` throws of the gateway's errors.
    func read<Result>(_ body: (any SQLConnection) throws -> Result) throws(GatewayError) -> Result
}

/// A database of one kind of things, such as what operators set or the sessions.
package protocol SQLDatabase: SQLReader {
    /// Runs `body` in one transaction: all of it is kept, or nothing. Throws what `body` and the engine throw, as it is.
    ///
    /// `alone`: nobody else writes this kind of things meanwhile, so that `body` may decide by what it reads. Without it,
    /// an engine may let others write, and `body` says by ``SQLConnection/forUpdate`` what it has read to change. SQLite has
    /// one writer at a time in either case.
    func transaction<Result>(
        alone: Bool, _ body: (any SQLConnection) throws -> Result
    ) throws -> Result

    /// Changes whenever somebody else has committed. Throws `storage`.
    func version() throws(GatewayError) -> Int64
}

extension SQLDatabase {
    package var isThere: Bool { true }

    /// Runs `body` in a transaction, again from its beginning when others were in its way: at most 5 times. So what `body`
    /// does besides must not add up. Throws what `body` and the engine throw, as it is.
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

    /// Runs `body` in a transaction as ``commit(alone:_:)`` does. Throws `storage`, and what `body` throws of the gateway's
    /// errors.
    package func write<Result>(
        alone: Bool = true, _ body: (any SQLConnection) throws -> Result
    ) throws(GatewayError) -> Result {
        try GatewayError.storing { try commit(alone: alone, body) }
    }
}
