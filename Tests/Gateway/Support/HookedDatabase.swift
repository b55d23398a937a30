package import GatewayModel
package import GatewayStorage

/// A database that calls closures before reads and transactions, as if another process acted then.
package struct HookedDatabase: SQLDatabase {
    private let database: any SQLDatabase
    private let willRead: @Sendable () throws(GatewayError) -> Void
    private let willChange: @Sendable () throws -> Void

    package init(
        _ database: any SQLDatabase, willRead: @escaping @Sendable () throws(GatewayError) -> Void = {},
        willChange: @escaping @Sendable () throws -> Void = {}
    ) {
        (self.database, self.willRead, self.willChange) = (database, willRead, willChange)
    }

    package func read<Result>(
        _ body: (any SQLConnection) throws -> Result
    ) throws(GatewayError) -> Result {
        try willRead()
        return try database.read(body)
    }

    package func transaction<Result>(
        alone: Bool, _ body: (any SQLConnection) throws -> Result
    ) throws -> Result {
        try willChange()
        return try database.transaction(alone: alone, body)
    }

    package func version() throws(GatewayError) -> Int64 { try database.version() }
}
