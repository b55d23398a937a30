internal import CountersignCore
internal import CountersignSQLite
internal import CountersignTransport
internal import Foundation

extension EventQueue {
    /// Replaces `NULL`, because the columns of a damaged event may have any value.
    func quarantine(_ sequence: Int64, _ reason: ServerAnswer.Explanation) throws {
        try connection.run(
            """
            INSERT OR REPLACE INTO quarantine
                (seq, message_id, user_id, session_id, body, code, reason, quarantined_ms)
            SELECT seq, coalesce(message_id, ''), coalesce(user_id, ''), coalesce(session_id, ''),
                coalesce(body, x''), ?, ?, ? FROM event WHERE seq = ?
            """,
            .text(reason.code), .text(reason.reason), .integer(Milliseconds(clock.now).count),
            .integer(sequence))
        guard try remove(sequence) else { return }
        try add(.quarantined, 1)
        try limitQuarantine()
    }

    /// For an event that was never in the queue.
    func quarantine(_ row: RenderedEvent, _ reason: ServerAnswer.Explanation) throws {
        // Inserted into the queue's table first, so that its sequence number is unique.
        try connection.run(
            "INSERT INTO event (message_id, user_id, session_id, queue_time_s, body) VALUES (?, ?, ?, 0, ?)",
            .text(row.messageID), .text(row.userID ?? ""), .text(row.sessionID), .blob(row.body))
        let sequence = connection.lastInsertRowID
        try addSize(rows: 1, bytes: row.body.count + Self.rowOverheadBytes)
        try quarantine(sequence, reason)
    }

    private func limitQuarantine() throws {
        try connection.run(
            """
            DELETE FROM quarantine WHERE seq IN (
                SELECT seq FROM quarantine ORDER BY seq
                LIMIT max(0, (SELECT count(*) FROM quarantine) - ?))
            """, .integer(Int64(limits.maximumQuarantinedEvents)))
        try add(.evictedFromQuarantine, connection.changes)
    }

    func quarantined() throws -> [QuarantinedEvent] {
        try connection.all(
            "SELECT message_id, user_id, code, reason, quarantined_ms, body FROM quarantine ORDER BY seq"
        ) { row throws(SQLiteError) in
            QuarantinedEvent(
                messageID: row.text(0), userID: UserKey(column: row.text(1)).userID, code: row.text(2),
                reason: row.text(3), date: Milliseconds(row.int64(4)).date,
                body: row.blob(5))
        }
    }

    func requeue() throws -> Int {
        try connection.transaction {
            let time = queueTime.seconds(uptime: clock.uptime)
            let bytes =
                try connection.integer(
                    "SELECT sum(coalesce(length(body), 0) + ?) FROM quarantine",
                    .integer(Int64(Self.rowOverheadBytes))) ?? 0
            try connection.run(
                """
                INSERT INTO event (message_id, user_id, session_id, queue_time_s, body)
                SELECT coalesce(message_id, ''), coalesce(user_id, ''), coalesce(session_id, ''), ?,
                    coalesce(body, x'') FROM quarantine ORDER BY seq
                """, .integer(time))
            let count = connection.changes
            try connection.run("DELETE FROM quarantine")
            try add(.requeued, count)
            try addSize(rows: count, bytes: bytes)
            return count
        }
    }

    func deleteQuarantine() throws -> Int {
        try connection.run("DELETE FROM quarantine")
        return connection.changes
    }
}
