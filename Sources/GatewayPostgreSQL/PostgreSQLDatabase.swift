internal import CountersignSQLite
package import GatewayModel

/// One kind of data, as ``SQLDatabase`` wants it.
package struct PostgreSQLDatabase: Sendable {
    private static let mostTries = 5

    let pool: PostgreSQLPool
    let kind: DataKind

    package init(_ pool: PostgreSQLPool, _ kind: DataKind) {
        self.pool = pool
        self.kind = kind
    }

    package func read<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws(GatewayError) -> Value {
        try GatewayError.inDatabase { try pool.use { try body($0) } }
    }

    /// Runs `body` in a transaction that has the kind alone, in all gateways. When it has changed something, the kind's
    /// generation goes up in the same transaction, and those who listen are told.
    package func write<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws(GatewayError) -> Value {
        try GatewayError.inDatabase {
            try pool.use { connection in
                var tries = 0
                while true {
                    do {
                        return try write(connection, body)
                    } catch let error as PostgreSQLError
                        where error.isWorthAnotherTry && tries < Self.mostTries
                    {
                        tries += 1
                    }
                }
            }
        }
    }

    private func write<Value>(
        _ connection: PostgreSQLConnection, _ body: (PostgreSQLConnection) throws -> Value
    ) throws -> Value {
        let lock = "BEGIN; SELECT 1 FROM generation WHERE kind = '\(kind.rawValue)' FOR UPDATE"
        return try connection.transaction(lock) {
            connection.hasChanged = false
            let value = try body(connection)
            if connection.hasChanged {
                try connection.execute(
                    """
                    UPDATE generation SET number = number + 1 WHERE kind = '\(kind.rawValue)';
                    NOTIFY \(kind.channel)
                    """)
            }
            return value
        }
    }

    /// Changes whenever somebody has committed a change of this kind.
    package func version() throws(GatewayError) -> Int64 {
        try read { connection in
            try connection.first("SELECT number FROM generation WHERE kind = ?1", .text(kind.rawValue)) {
                $0.int64(0)
            } ?? 0
        }
    }
}

extension GatewayError {
    /// What `body` gives; an error that is none of the gateway's own becomes `storage`.
    static func inDatabase<Value>(_ body: () throws -> Value) throws(GatewayError) -> Value {
        do {
            return try body()
        } catch let error as GatewayError {
            throw error
        } catch {
            throw GatewayError(.storage, "\(error)")
        }
    }
}
