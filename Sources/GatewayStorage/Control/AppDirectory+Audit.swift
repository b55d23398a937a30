package import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// What was changed, by whom: entries that each carry the hash of the one before, so that none can be changed or taken
/// out unnoticed.
extension AppDirectory {
    /// Notes a change in the transaction that makes it.
    func audit(
        _ sqlite: SQLiteConnection, _ action: String, _ target: String, app appID: String? = nil,
        before: JSONValue? = nil, after: JSONValue? = nil, at milliseconds: Int64? = nil
    ) throws {
        func text(_ value: JSONValue?) -> String? { value.map { String(decoding: $0.bytes, as: UTF8.self) } }
        let last = try sqlite.first("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1") {
            ($0.int64(0), $0.blob(1))
        }
        // AUTOINCREMENT's own number: an entry that was taken off the end leaves a gap.
        let number = try sqlite.first("SELECT seq FROM sqlite_sequence WHERE name = 'audit'") { $0.int64(0) }
        var entry = AuditEntry(
            seq: (number ?? 0) + 1, atMilliseconds: milliseconds ?? Self.now(), actor: actor.name,
            role: actor.role, action: action, target: target, appID: appID, before: text(before),
            after: text(after), previousHash: last?.1 ?? AuditEntry.root, hash: [])
        entry.hash = entry.computedHash
        try sqlite.run(
            "INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)", .integer(entry.seq),
            .integer(entry.atMilliseconds), .text(entry.actor), .text(entry.role), .text(entry.action),
            .text(entry.target), .optionalText(entry.appID), .optionalText(entry.before),
            .optionalText(entry.after), .blob(entry.previousHash), .blob(entry.hash))
    }

    /// Notes what changes nothing here: a look at what is hidden, or a change to what is kept elsewhere.
    ///
    /// - Throws: `storage`.
    package func note(
        _ action: String, _ target: String, app appID: String? = nil, before: JSONValue? = nil,
        after: JSONValue? = nil
    ) throws(GatewayError) {
        try write { try audit($0, action, target, app: appID, before: before, after: after) }
    }

    /// Entries, the newest first.
    ///
    /// - Parameters:
    ///   - appID: Only of this app; nil for all.
    ///   - actor: Only of this one; nil for all.
    ///   - before: Only those with a lower number.
    ///   - limit: The most to read.
    /// - Returns: The entries.
    /// - Throws: `storage`.
    package func auditEntries(
        app appID: String? = nil, actor: String? = nil, before: Int64 = .max, limit: Int
    ) throws(GatewayError) -> [AuditEntry] {
        try read { sqlite in
            try sqlite.all(
                """
                SELECT * FROM audit WHERE seq < ?1 AND (?2 IS NULL OR app_id = ?2) AND (?3 IS NULL OR actor = ?3)
                ORDER BY seq DESC LIMIT ?4
                """, .integer(before), .optionalText(appID), .optionalText(actor), .integer(Int64(limit)),
                row: Self.auditEntry)
        }
    }

    /// The changes to an app in a range of time, the oldest first; at most 500.
    package func auditEntries(
        app appID: String, actions: [String], from: Int64, to: Int64
    ) throws(GatewayError) -> [AuditEntry] {
        try read { sqlite in
            try sqlite.all(
                "SELECT * FROM audit WHERE app_id = ?1 AND at_ms >= ?2 AND at_ms < ?3 ORDER BY seq DESC LIMIT 2000",
                .text(appID), .integer(from), .integer(to), row: Self.auditEntry
            ).filter { actions.contains($0.action) }.prefix(500).reversed()
        }
    }

    /// Holds the chain against itself.
    ///
    /// - Returns: How many entries there are, and the number of the first that is not what was written; nil when all are.
    /// - Throws: `storage`.
    package func verifyAudit() throws(GatewayError) -> (entries: Int, brokenAt: Int64?) {
        try read { sqlite in
            var previous = AuditEntry.root
            var entries = 0
            var expected: Int64 = 1
            let statement = try sqlite.prepare("SELECT * FROM audit ORDER BY seq")
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
