internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

/// Assigns anonymous events whose message id was derived from their content to the user who signs in. An event that
/// another user has claimed is no duplicate, because an attacker may know the content and send it first.
struct ContentClaims {
    let isEmpty: Bool

    init(_ batches: [EventBatch]) {
        isEmpty = !batches.contains { $0.events.contains(where: Self.claims) }
    }

    private static func claims(_ event: EventBatch.Event) -> Bool {
        event.isIdentifiedByContent && event.userID != nil
    }

    func split(
        _ rows: [EventInsert.Row], _ batches: [EventBatch]
    ) -> (claiming: [EventInsert.Row], others: [EventInsert.Row]) {
        var claiming: [EventInsert.Row] = []
        var others: [EventInsert.Row] = []
        for row in rows {
            if Self.claims(batches[row.batch].events[row.event]) {
                claiming.append(row)
            } else {
                others.append(row)
            }
        }
        return (claiming, others)
    }

    /// Assigns stored events to their users. Returns the other rows, which must be inserted.
    func claim(
        _ rows: [EventInsert.Row], of batches: [EventBatch], _ outcomes: inout [AppendOutcome],
        _ connection: PostgreSQLConnection
    ) throws -> [EventInsert.Row] {
        guard !rows.isEmpty else { return [] }
        var parameters = Parameters()
        parameters.add(integers: rows.indices.map { Int64($0) })
        parameters.add(integers: rows.map { Int64($0.key.bucket) })
        parameters.add(texts: rows.map { batches[$0.batch].appID })
        parameters.add(texts: rows.map { $0.key.id })
        parameters.add(texts: rows.map { batches[$0.batch].events[$0.event].userID })
        // Locks rows in the order of ids, as all writers do. The first claim in a transaction gets the event.
        var found: [(row: Int, app: String, position: Int64, user: String)] = []
        try connection.each(
            """
            SELECT u.n, u.app_id, own.position, u.user_id
            FROM unnest($1, $2, $3, $4, $5) AS u (n, bucket, app_id, id, user_id)
            JOIN message_id AS own ON own.bucket = u.bucket AND own.app_id = u.app_id AND own.id = u.id
                AND own.sender = '\(EventSender.anonymousContent)'
            ORDER BY u.n FOR UPDATE OF own
            """, parameters
        ) { row in
            found.append((row.int(0), row.text(1), row.int64(2), row.text(3)))
            return true
        }
        var claimed: Set<Int> = []
        for one in found {
            try connection.run(
                "UPDATE event SET user_id = ?3 WHERE app_id = ?1 AND position = ?2 AND user_id IS NULL",
                .text(one.app), .integer(one.position), .text(one.user))
            let isTheirs =
                try connection.changes > 0
                || connection.first(
                    "SELECT 1 FROM event WHERE app_id = ?1 AND position = ?2 AND user_id = ?3",
                    .text(one.app), .integer(one.position), .text(one.user)
                ) { _ in true } == true
            guard isTheirs else { continue }
            claimed.insert(one.row)
            outcomes[rows[one.row].batch].duplicates += 1
        }
        return rows.enumerated().filter { !claimed.contains($0.offset) }.map(\.element)
    }
}
