internal import GatewayModel

/// A database within an open transaction. Must not be used after the transaction's end, or by another thread.
final class OpenTransaction: SQLDatabase, @unchecked Sendable {
    // `connection` and `retryable` are used only by the thread that runs the transaction.
    private let connection: any SQLConnection
    /// A conflict with another transaction. All later calls throw it, and the whole transaction may be retried.
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
        throw GatewayError(.storage, "a transaction does not see commits of other connections")
    }
}

extension SQLDatabase {
    /// Runs `body` in one exclusive transaction. `body` may run again from its start, as in ``commit(alone:_:)``.
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
