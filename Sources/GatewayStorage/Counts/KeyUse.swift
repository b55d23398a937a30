internal import CountersignCore
internal import CountersignSQLite

/// How much a public key has verified (seed 003, "Managing public keys": which key is safe to delete).
package struct KeyUse: Sendable, Equatable {
    package let appID: String
    package let keyID: String
    /// Requests whose token this key verified.
    package var verified: Int64
    /// Milliseconds since 1970 of the last of them.
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
        // An earlier version's file has no such table before this version's gateway has run on it.
        let isThere = try sqlite.first("SELECT 1 FROM sqlite_schema WHERE name = 'key_use'") { _ in true }
        guard isThere == true else { return [] }
        return try sqlite.all(
            "SELECT key_id, verified, last_ms FROM key_use WHERE app_id = ? ORDER BY key_id", .text(appID)
        ) { row in
            KeyUse(appID: appID, keyID: row.text(0), verified: row.int64(1), lastMilliseconds: row.int64(2))
        }
    }
}

/// Uses of keys that are not written yet, added up.
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

    /// Puts back what a failed commit had taken.
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
