internal import GatewayModel

/// A database inside one of its own transactions: whatever is read and written through it belongs to that transaction.
///
/// It must not be used after the transaction has ended, nor by another thread.
final class OpenTransaction: SQLDatabase, @unchecked Sendable {
    // Only the thread that runs the transaction uses both.
    private let connection: any SQLConnection
    /// The error for which the whole transaction may be run again. Later statements would only fail because of it.
    private(set) var retryable: (any StorageError)?

    init(_ connection: any SQLConnection) {
        self.connection = connection
    }

    func read<Result>(_ body: (any SQLConnection) throws -> Result) throws(GatewayError) -> Result {
        try GatewayError.storing { try transaction(alone: false, body) }
    }

    func transaction<Result>(
        alone: Bool, _ body: (any SQLConnection) throws -> Result
    ) throws -> Result {
        if let retryable { throw retryable }
        do {
            return try body(connection)
        } catch let error as any StorageError where error.isRetryable {
            retryable = error
            throw error
        }
    }

    func version() throws(GatewayError) -> Int64 {
        throw GatewayError(.storage, "a transaction does not see what others commit")
    }
}

extension SQLDatabase {
    /// Runs `body` in one transaction during which nobody else writes, with a database that reads and writes in it. It may
    /// run again from its beginning, as in ``commit(alone:_:)``. Throws `storage`, and what `body` throws, as it is.
    package func alone<Result>(_ body: (any SQLDatabase) throws -> Result) throws -> Result {
        do {
            return try commit(alone: true) { connection in
                let open = OpenTransaction(connection)
                do {
                    return try body(open)
                } catch {
                    throw open.retryable ?? error
                }
            }
        } catch let error as any StorageError {
            return try GatewayError.storing { throw error }
        }
    }
}
