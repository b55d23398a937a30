internal import CountersignSQLite
package import GatewayModel

/// The secret that pseudonyms of users are made with.
extension AppDirectory {
    /// The gateway's own 32 random bytes, made when they are first asked for and the same ever after. Throws `storage`.
    package func pseudonymKey() throws(GatewayError) -> [UInt8] {
        let kept = try read { connection in
            try connection.first("SELECT key FROM pseudonym_key") { $0.blob(0) }
        }
        if let kept { return kept }
        return try write { connection in
            // Another process may have been faster: what is there stays.
            try connection.run(
                "INSERT INTO pseudonym_key (id, key) VALUES (1, ?) ON CONFLICT DO NOTHING",
                .blob(.random(count: 32)))
            return try connection.first("SELECT key FROM pseudonym_key") { $0.blob(0) } ?? []
        }
    }
}
