internal import CountersignSQLite

extension EventQueue {
    func bodies() throws -> [[UInt8]] {
        try connection.all("SELECT body FROM event ORDER BY seq") { row throws(SQLiteError) in row.blob(0) }
    }

    func hasEvents(of userID: String) throws -> Bool {
        try connection.integer(
            """
            SELECT EXISTS (SELECT 1 FROM event WHERE user_id = ?1)
                OR EXISTS (SELECT 1 FROM quarantine WHERE user_id = ?1)
            """, .text(userID)) == 1
    }

    func owners() throws -> [String] {
        try connection.all(
            "SELECT user_id FROM event WHERE user_id <> '' UNION SELECT user_id FROM quarantine WHERE user_id <> ''"
        ) { row throws(SQLiteError) in row.text(0) }
    }

    /// Counts the event as wiped. Returns false if the queue does not have it.
    func remove(messageID: String) throws -> Bool {
        try connection.transaction {
            let found = try connection.all("SELECT seq FROM event WHERE message_id = ?", .text(messageID)) {
                row throws(SQLiteError) in row.int64(0)
            }
            for sequence in found where try remove(sequence) { try add(.wiped, 1) }
            return !found.isEmpty
        }
    }
}
