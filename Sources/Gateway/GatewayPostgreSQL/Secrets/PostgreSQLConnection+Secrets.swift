internal import CountersignSQLite
package import GatewayStorage

/// Encrypts secrets with the token key, which is never in the database.
extension PostgreSQLConnection {
    private static let rowsPerStep = 100

    /// Returns the secret unchanged without a key, or while a gateway runs that cannot decrypt secrets.
    package func sealed(_ secret: [UInt8], _ column: SecretColumn, _ key: String...) throws -> [UInt8] {
        guard let tokenKey, try everyGatewayOpensSeals() else { return secret }
        return try tokenKey().sealed(secret, column, key)
    }

    package func opened(_ stored: [UInt8], _ column: SecretColumn, _ key: String...) throws -> [UInt8] {
        guard TokenKeySeal.isSealed(stored) else { return stored }
        guard let secret = try tokenKey?().opened(stored, column, key) else {
            throw column.notOpened(key)
        }
        return secret
    }

    /// Encrypts remaining plain secrets, once no gateway runs that cannot decrypt them.
    func sealSecrets() throws {
        for column in SecretColumn.all {
            while try sealSome(of: column) {}
        }
    }

    /// Returns true when more secrets may remain.
    private func sealSome(of column: SecretColumn) throws -> Bool {
        let isDone = try first("SELECT 1 FROM \(column.table) WHERE \(column.isOpen)") { _ in false } ?? true
        guard !isDone, let tokenKey, try everyGatewayOpensSeals() else { return false }
        let seal = try tokenKey()
        // Excludes concurrent changes of control data, without waiting for long.
        let begin = """
            BEGIN; SET LOCAL lock_timeout = 2000;
            SELECT 1 FROM generation WHERE kind = '\(DataKind.control.rawValue)' FOR UPDATE
            """
        return try transaction(begin) {
            let names = column.key.map { "\"\($0)\"::text" }
            let rows = try all(
                """
                SELECT \(names.joined(separator: ", ")), \(column.column) FROM \(column.table)
                WHERE \(column.isOpen) LIMIT \(Self.rowsPerStep)
                """
            ) { row in
                (key: names.indices.map { row.text(Int32($0)) }, secret: row.blob(Int32(names.count)))
            }
            for row in rows {
                let sealed = seal.sealed(row.secret, column, row.key)
                let conditions = names.enumerated().map { "\($1) = ?\($0 + 2)" }
                try each(
                    """
                    UPDATE \(column.table) SET \(column.column) = ?1
                    WHERE \(conditions.joined(separator: " AND "))
                    """, [column.value(sealed)] + row.key.map { .text($0) }
                ) { _ in true }
            }
            return rows.count == Self.rowsPerStep
        }
    }

    /// Gateways of versions that cannot decrypt have 0 in `opens_seals`, and cannot start with this schema.
    private func everyGatewayOpensSeals() throws -> Bool {
        try first(
            "SELECT 1 FROM gateway WHERE opens_seals = 0 AND seen_ms > \(ClusterTables.now) - ?1 LIMIT 1",
            .integer(ClusterRules.deadMilliseconds)
        ) { _ in false } ?? true
    }
}
