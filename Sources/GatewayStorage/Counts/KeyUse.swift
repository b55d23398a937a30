internal import CountersignCore
internal import CountersignSQLite

/// The use of a public key, to find keys that are safe to delete.
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
        // The table is missing in a file of an earlier version until a gateway of this version has run.
        let isThere = try sqlite.first("SELECT 1 FROM sqlite_schema WHERE name = 'key_use'") { _ in true }
        guard isThere == true else { return [] }
        return try sqlite.all(
            "SELECT key_id, verified, last_ms FROM key_use WHERE app_id = ? ORDER BY key_id", .text(appID)
        ) { row in
            KeyUse(appID: appID, keyID: row.text(0), verified: row.int64(1), lastMilliseconds: row.int64(2))
        }
    }
}

/// Sums of key uses that are not yet stored.
struct KeyUseTally {
    private struct Key: Hashable {
        let appID: String
        let keyID: String
    }

    private var uses: [Key: (count: Int64, lastMilliseconds: Int64)] = [:]

    var isEmpty: Bool { uses.isEmpty }

    mutating func add(appID: String, keyID: String, milliseconds: Int64) {
        Self.note(milliseconds, in: &uses[Key(appID: appID, keyID: keyID), default: (0, 0)])
    }

    private static func note(_ milliseconds: Int64, in use: inout (count: Int64, lastMilliseconds: Int64)) {
        use.count += 1
        use.lastMilliseconds = max(use.lastMilliseconds, milliseconds)
    }

    /// Restores the uses of a failed commit.
    mutating func add(_ other: KeyUseTally) {
        uses.merge(other.uses) { ($0.count + $1.count, max($0.lastMilliseconds, $1.lastMilliseconds)) }
    }

    func write(to connection: SQLiteConnection) throws(SQLiteError) {
        for (key, use) in uses {
            try connection.run(
                """
                INSERT INTO key_use VALUES (?1, ?2, ?3, ?4) ON CONFLICT (app_id, key_id)
                DO UPDATE SET verified = verified + ?3, last_ms = max(last_ms, ?4)
                """,
                .text(key.appID), .text(key.keyID), .integer(use.count), .integer(use.lastMilliseconds))
        }
    }
}
