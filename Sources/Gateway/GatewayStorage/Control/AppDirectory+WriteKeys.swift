package import CountersignCore
internal import CountersignCrypto
internal import CountersignSQLite
package import GatewayModel

/// A key with which apps send events. Every copy of an app contains it, so it is not secret.
package struct WriteKey: Sendable {
    /// The first 16 hexadecimal digits of the key's SHA-256.
    package let id: String
    /// The first characters of the key, for identifying it in an app; nil for a key of an older version.
    package let prefix: String?
    /// The text of the key; nil for a key of an older version, which stored only its hash.
    package let text: String?
    package let description: String
    package let createdMilliseconds: Int64
    /// In milliseconds since 1970; nil when never used.
    package var usedMilliseconds: Int64?

    package var json: JSONValue { ["id": .string(id), "description": .string(description)] }

    /// The id of the key with this hash, used in logs and paths.
    package static func identifier(_ hash: [UInt8]) -> String { Array(hash.prefix(8)).hexadecimal }
}

/// An app's write keys. An app may have several, so that a key can be replaced without losing requests.
extension AppDirectory {
    package static let maximumWriteKeys = 20

    /// Oldest first.
    package func writeKeys(of appID: String) throws(GatewayError) -> [WriteKey] {
        let app = try app(id: appID)
        return try read { try Self.writeKeys(of: app.id, $0) }
    }

    /// Throws `conflict` if the app has the maximum number of keys.
    package func createWriteKey(
        for appID: String, description: String
    ) throws(GatewayError) -> (entry: WriteKey, text: String) {
        let app = try app(id: appID)
        let text = Self.newWriteKey()
        let hash = SHA256.digest(text)
        let entry = WriteKey(
            id: WriteKey.identifier(hash), prefix: Self.prefix(ofWriteKey: text), text: text,
            description: description, createdMilliseconds: nowMilliseconds)
        try write { connection in
            guard try Self.writeKeys(of: app.id, connection).count < Self.maximumWriteKeys else {
                throw GatewayError(
                    .conflict, "the app has \(Self.maximumWriteKeys) write keys, which is the maximum")
            }
            try connection.run(
                """
                INSERT INTO write_key (hash, app_id, created_ms, description, prefix, text)
                VALUES (?, ?, ?, ?, ?, ?)
                """,
                .blob(hash), .text(app.id), .integer(entry.createdMilliseconds), .text(description),
                .text(Self.prefix(ofWriteKey: text)), .text(text))
            try audit(
                connection, "write_key.create", entry.id, app: app.id,
                after: entry.json)
        }
        return (entry, text)
    }

    package func deleteWriteKey(id: String, of appID: String) throws(GatewayError) {
        try write { connection in
            let key = try Self.writeKeys(of: appID, connection).first { $0.id == id }
            let hashes = try connection.all(
                "SELECT hash FROM write_key WHERE app_id = ?", .text(appID)
            ) { $0.blob(0) }
            guard let key, let hash = hashes.first(where: { WriteKey.identifier($0) == id }) else {
                throw GatewayError(.notFound, "the app \(appID) has no write key \(id)")
            }
            try connection.run("DELETE FROM write_key WHERE hash = ?", .blob(hash))
            try audit(connection, "write_key.delete", id, app: appID, before: key.json)
        }
    }

    /// Stores the last use of each key, by its hash, in milliseconds since 1970. Adds no audit entry.
    package func noteWriteKeyUses(_ uses: [[UInt8]: Int64]) throws(GatewayError) {
        try write { connection in
            for (hash, milliseconds) in uses {
                try connection.run(
                    """
                    UPDATE write_key SET used_ms = ?2
                    WHERE hash = ?1 AND (used_ms < ?2 OR used_ms > ?3 OR used_ms IS NULL)
                    """, .blob(hash), .integer(milliseconds),
                    .integer(DueTime.last(at: milliseconds, within: 0)))
            }
        }
    }

    private static func writeKeys(of appID: String, _ connection: any SQLConnection) throws -> [WriteKey] {
        try connection.all(
            """
            SELECT hash, prefix, description, created_ms, used_ms, text FROM write_key WHERE app_id = ?
            ORDER BY created_ms, hash
            """, .text(appID)
        ) { row in
            WriteKey(
                id: WriteKey.identifier(row.blob(0)), prefix: row.text(1).isEmpty ? nil : row.text(1),
                text: row.optionalText(5), description: row.text(2), createdMilliseconds: row.int64(3),
                usedMilliseconds: row.optionalInt64(4))
        }
    }
}
