internal import CountersignSQLite
package import GatewayModel

extension AppDirectory {
    /// The key of the pseudonyms: 32 random bytes, created on the first call and then unchanged.
    package func pseudonymKey() throws(GatewayError) -> [UInt8] {
        if let kept = try read({ try Self.pseudonymKey($0) }) { return kept }
        return try write { connection in
            // Another process may have created the key since the read.
            let made = try connection.sealed(.random(count: 32), .pseudonymKey, "1")
            try connection.run(
                "INSERT INTO pseudonym_key (id, key) VALUES (1, ?) ON CONFLICT DO NOTHING", .blob(made))
            return try Self.pseudonymKey(connection) ?? []
        }
    }

    private static func pseudonymKey(_ connection: any SQLConnection) throws -> [UInt8]? {
        try connection.first("SELECT key FROM pseudonym_key") { row in
            try connection.opened(row.blob(0), .pseudonymKey, "1")
        }
    }
}
