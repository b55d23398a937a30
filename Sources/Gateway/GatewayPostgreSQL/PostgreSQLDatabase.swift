internal import CountersignSQLite
package import GatewayModel
package import GatewayStorage

/// One kind of data in PostgreSQL, for the stores whose SQL both SQLite and PostgreSQL accept.
package struct PostgreSQLDatabase: SQLDatabase {
    let pool: PostgreSQLPool
    let kind: DataKind

    package init(_ pool: PostgreSQLPool, _ kind: DataKind) {
        self.pool = pool
        self.kind = kind
    }

    package func read<Result>(
        _ body: (any SQLConnection) throws -> Result
    ) throws(GatewayError) -> Result {
        try GatewayError.storing { try pool.use { try body($0) } }
    }

    package func transaction<Result>(
        alone: Bool, _ body: (any SQLConnection) throws -> Result
    ) throws -> Result {
        try pool.use { connection in
            connection.kind = kind
            guard alone else { return try connection.transaction { try body(connection) } }
            let lock = "BEGIN; SELECT 1 FROM generation WHERE kind = '\(kind.rawValue)' FOR UPDATE"
            return try connection.transaction(lock) {
                connection.hasChanged = false
                let result = try body(connection)
                if connection.hasChanged {
                    try connection.execute(
                        """
                        UPDATE generation SET number = number + 1 WHERE kind = '\(kind.rawValue)';
                        NOTIFY \(kind.channel)
                        """)
                }
                return result
            }
        }
    }

    package func version() throws(GatewayError) -> Int64 {
        try read { connection in
            try connection.first(
                kind.isWrittenAlone
                    ? "SELECT number FROM generation WHERE kind = ?1"
                    // This kind's generation is constant. The snapshot changes whenever a writing transaction ends.
                    : "SELECT hashtextextended(pg_current_snapshot()::text, 0) WHERE ?1 <> ''",
                .text(kind.rawValue)
            ) { $0.int64(0) } ?? 0
        }
    }
}
