package import CountersignCore
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// The audit log. Each entry contains the hash of the previous one, so that changes and removals are detectable.
package struct AuditLog: ControlStore {
    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    /// Adds an entry for an action that does not change this database, such as viewing a secret.
    package func note(
        _ action: String, _ target: String, app appID: String? = nil, before: JSONValue? = nil,
        after: JSONValue? = nil
    ) throws(GatewayError) {
        try write { try audit($0, action, target, app: appID, before: before, after: after) }
    }

    /// The hash of the newest entry, which changes with every change by an operator.
    package func head() throws(GatewayError) -> [UInt8]? {
        try read { connection in
            try connection.first("SELECT hash FROM audit_head") { $0.blob(0) }
        }
    }

    /// Newest first.
    package func entries(
        app appID: String? = nil, actor: String? = nil, before: Int64 = .max, limit: Int
    ) throws(GatewayError) -> [AuditEntry] {
        try read { connection in
            try connection.all(
                """
                SELECT \(AuditEntry.columns) FROM audit WHERE seq < ?1 AND (app_id = ?2 OR ?2 IS NULL)
                    AND (actor = ?3 OR ?3 IS NULL)
                ORDER BY seq DESC LIMIT ?4
                """, .integer(before), .optionalText(appID), .optionalText(actor), .integer(Int64(limit)),
                row: Self.auditEntry)
        }
    }

    /// The newest 500 entries with these actions, oldest first.
    package func entries(
        app appID: String, actions: [String], from: Int64, to: Int64
    ) throws(GatewayError) -> [AuditEntry] {
        try read { connection in
            let range: [SQLValue] = [.text(appID), .integer(from), .integer(to)]
            let places = actions.indices.map { "?\($0 + 4)" }.joined(separator: ", ")
            return try connection.all(
                """
                SELECT \(AuditEntry.columns) FROM audit
                WHERE app_id = ?1 AND at_ms >= ?2 AND at_ms < ?3 AND action IN (\(places))
                ORDER BY seq DESC LIMIT 500
                """, range + actions.map { SQLValue.text($0) },
                row: Self.auditEntry
            ).reversed()
        }
    }

    /// Verifies the hash chain and the recorded end. `brokenAt` is the number of the first invalid or missing entry.
    package func verify() throws(GatewayError) -> (entries: Int, brokenAt: Int64?) {
        try read { connection in
            var previous = AuditEntry.root
            var (entries, expected) = (0, Int64(1))
            var head: (seq: Int64, hash: [UInt8])?
            var brokenAt: Int64?
            // One statement, so that the head and the entries are from the same snapshot.
            try connection.each(
                """
                SELECT \(AuditEntry.columns), head_seq, head_hash
                FROM (SELECT seq AS head_seq, hash AS head_hash FROM audit_head) AS head LEFT JOIN audit ON 1 = 1
                ORDER BY seq
                """, []
            ) { row in
                head = (row.int64(11), row.blob(12))
                if row.isNull(0) { return true }
                let entry = Self.auditEntry(row)
                entries += 1
                guard entry.seq == expected, entry.previousHash == previous, entry.hash == entry.computedHash
                else {
                    brokenAt = min(entry.seq, expected)
                    return false
                }
                previous = entry.hash
                expected += 1
                return true
            }
            let last = expected - 1
            if brokenAt == nil, head?.seq != last || head?.hash != previous {
                brokenAt = max(1, (head?.seq).map { $0 == last ? last : min($0, last) + 1 } ?? 1)
            }
            return (entries, brokenAt)
        }
    }

    private static func auditEntry(_ row: any SQLRow) -> AuditEntry {
        AuditEntry(
            seq: row.int64(0), atMilliseconds: row.int64(1), actor: row.text(2), role: row.text(3),
            action: row.text(4), target: row.text(5), appID: row.optionalText(6), before: row.optionalText(7),
            after: row.optionalText(8), previousHash: row.blob(9), hash: row.blob(10))
    }
}
