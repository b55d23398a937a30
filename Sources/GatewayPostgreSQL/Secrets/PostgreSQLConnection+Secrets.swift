internal import CountersignSQLite
package import GatewayStorage

/// Secrets are sealed with the token key, which is in no copy of the database.
extension PostgreSQLConnection {
    /// Rows that are sealed in one transaction.
    private static let rowsPerStep = 100

    /// Left open while a gateway runs that could not read what is sealed, and where no key was given.
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

    /// Seals what was left open, as soon as no gateway runs that could not read it.
    func sealSecrets() throws {
        for column in SecretColumn.all {
            while try sealSome(of: column) {}
        }
    }

    /// True when there may be more.
    private func sealSome(of column: SecretColumn) throws -> Bool {
        let isDone = try first("SELECT 1 FROM \(column.table) WHERE \(column.isOpen)") { _ in false } ?? true
        guard !isDone, let tokenKey, try everyGatewayOpensSeals() else { return false }
        let seal = try tokenKey()
        // Nobody changes what operators set meanwhile, and whoever does so now is not waited for long.
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

    /// The gateways of the version before do not say that they do, and none starts any more once the schema is this one's.
    private func everyGatewayOpensSeals() throws -> Bool {
        try first(
            "SELECT 1 FROM gateway WHERE opens_seals = 0 AND seen_ms > \(ClusterTables.now) - ?1 LIMIT 1",
            .integer(ClusterRules.deadMilliseconds)
        ) { _ in false } ?? true
    }
}
