package import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// What was changed, by whom: entries that each carry the hash of the one before, so that none can be changed or taken
/// out unnoticed.
package struct AuditLog: ControlStore {
    package let database: ControlDatabase
    package let actor: Operator

    /// Notes what changes nothing here: a look at what is hidden, or a change to what is kept elsewhere. Throws
    /// `storage`.
    package func note(
        _ action: String, _ target: String, app appID: String? = nil, before: JSONValue? = nil,
        after: JSONValue? = nil
    ) throws(GatewayError) {
        try write { try audit($0, action, target, app: appID, before: before, after: after) }
    }

    /// Entries, the newest first. Throws `storage`.
    package func entries(
        app appID: String? = nil, actor: String? = nil, before: Int64 = .max, limit: Int
    ) throws(GatewayError) -> [AuditEntry] {
        try read { sqlite in
            try sqlite.all(
                """
                SELECT \(AuditEntry.columns) FROM audit WHERE seq < ?1 AND (?2 IS NULL OR app_id = ?2) AND (?3 IS NULL OR actor = ?3)
                ORDER BY seq DESC LIMIT ?4
                """, .integer(before), .optionalText(appID), .optionalText(actor), .integer(Int64(limit)),
                row: Self.auditEntry)
        }
    }

    /// The changes to an app in a range of time, the oldest first; at most 500.
    package func entries(
        app appID: String, actions: [String], from: Int64, to: Int64
    ) throws(GatewayError) -> [AuditEntry] {
        try read { sqlite in
            try sqlite.all(
                "SELECT \(AuditEntry.columns) FROM audit WHERE app_id = ?1 AND at_ms >= ?2 AND at_ms < ?3 ORDER BY seq DESC LIMIT 2000",
                .text(appID), .integer(from), .integer(to), row: Self.auditEntry
            ).filter { actions.contains($0.action) }.prefix(500).reversed()
        }
    }

    /// Holds the chain against itself. Returns how many entries there are, and the number of the first that is not what
    /// was written; nil when all are. Throws `storage`.
    package func verify() throws(GatewayError) -> (entries: Int, brokenAt: Int64?) {
        try read { sqlite in
            var previous = AuditEntry.root
            var entries = 0
            var expected: Int64 = 1
            let statement = try sqlite.prepare("SELECT \(AuditEntry.columns) FROM audit ORDER BY seq")
            while try statement.step() {
                let entry = try Self.auditEntry(statement)
                entries += 1
                guard entry.seq == expected, entry.previousHash == previous, entry.hash == entry.computedHash
                else { return (entries, min(entry.seq, expected)) }
                previous = entry.hash
                expected += 1
            }
            let last =
                try sqlite.first("SELECT seq FROM sqlite_sequence WHERE name = 'audit'") { $0.int64(0) } ?? 0
            return (entries, last >= expected ? expected : nil)
        }
    }

    private static func auditEntry(_ row: SQLiteStatement) throws(SQLiteError) -> AuditEntry {
        AuditEntry(
            seq: row.int64(0), atMilliseconds: row.int64(1), actor: row.text(2), role: row.text(3),
            action: row.text(4), target: row.text(5), appID: row.optionalText(6), before: row.optionalText(7),
            after: row.optionalText(8), previousHash: row.blob(9), hash: row.blob(10))
    }
}
