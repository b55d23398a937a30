internal import CountersignCore
internal import CountersignSQLite

/// The number and last time of a public key's verifications, to find keys that are safe to delete.
package struct KeyUse: Sendable, Equatable {
    package let appID: String
    package let keyID: String
    /// Requests with a token that this key verified.
    package var verified: Int64
    /// Time of the last use, in milliseconds since 1970.
    package var lastMilliseconds: Int64

    package init(appID: String, keyID: String, verified: Int64, lastMilliseconds: Int64) {
        self.appID = appID
        self.keyID = keyID
        self.verified = verified
        self.lastMilliseconds = lastMilliseconds
    }

    static let schema = """
        CREATE TABLE key_use (
            app_id TEXT NOT NULL,
            key_id TEXT NOT NULL,
            verified INTEGER NOT NULL,
            last_ms INTEGER NOT NULL,
            PRIMARY KEY (app_id, key_id)
        ) STRICT, WITHOUT ROWID;
        """

    static func all(of appID: String, _ sqlite: SQLiteConnection) throws -> [KeyUse] {
        try sqlite.all(
            "SELECT key_id, verified, last_ms FROM key_use WHERE app_id = ? ORDER BY key_id", .text(appID)
        ) { row in
            KeyUse(appID: appID, keyID: row.text(0), verified: row.int64(1), lastMilliseconds: row.int64(2))
        }
    }
}
