internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel
package import GatewayStorage

/// Reads stored events. Only ``newest(_:before:limit:)`` returns events after the oldest open transaction.
package struct PostgreSQLEventLog: EventLog {
    let pool: PostgreSQLPool
    let now: @Sendable () -> Date
    /// The maximum time that the last page of an export waits for open transactions, in seconds.
    var patience = 20.0

    private func read<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws(GatewayError) -> Value {
        try GatewayError.storing { try pool.use { try body($0) } }
    }

    package func newest(
        _ query: EventQuery, before sequence: Int64?, limit: Int
    ) throws(GatewayError) -> EventPage {
        try read { connection in
            let found = try EventRows.scan(
                query, .before(sequence ?? .max), limit: limit, at: now(), connection)
            return EventPage(events: found.events, next: found.hasMore ? found.scannedThrough : nil)
        }
    }

    package func follow(
        _ query: EventQuery, after sequence: Int64, limit: Int
    ) throws(GatewayError) -> EventRange {
        try read { connection in
            guard query.isExport else {
                return try Self.follow(query, after: sequence, limit: limit, at: now(), connection)
            }
            // Uses one snapshot, so that a concurrently deleted event is either returned or reported as a gap. Locks
            // before the snapshot, because events of a partition dropped after it would be neither.
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK event IN ACCESS SHARE MODE"
            func page() throws -> EventRange {
                try connection.transaction(begin) {
                    try Self.follow(query, after: sequence, limit: limit, at: now(), connection)
                }
            }
            var range = try page()
            if range.hasMore { return range }
            // An export must contain all events acknowledged before it began, so it waits for open transactions.
            let newest = try connection.first(
                """
                SELECT max(position) FROM event WHERE app_id = ?1 AND position > ?2 AND received_ms < ?3
                """, .text(query.appID), .integer(range.scannedThrough),
                .integer(query.toMilliseconds ?? .max)
            ) { $0.optionalInt64(0) }
            guard let newest = newest ?? nil else { return range }
            // Returns the readable events without waiting. The next page then waits, and these events are not lost if
            // waiting fails.
            if !range.events.isEmpty {
                range.hasMore = true
                return range
            }
            guard
                try EventHorizon.waitForTransactions(connection, seconds: patience, before: newest)
            else { throw Self.incomplete }
            return try page()
        }
    }

    package func positions() throws(GatewayError) -> EventPositions {
        try read { connection in
            EventPositions(
                logID: try connection.first("SELECT id FROM event_log") { $0.blob(0) } ?? [],
                head: try EventHorizon.head(connection, isReadable: false))
        }
    }

    private static let incomplete = GatewayError(
        .storage,
        "the export is incomplete: a transaction that is open in the database keeps newer events from being read "
            + "in their order; end it (pg_stat_activity shows it), then export again after the last position")

    package func users(
        of appID: String, after last: String, _ isEnough: (String) -> Bool
    ) throws(GatewayError) {
        try read { connection in
            // Seeks from user to user, so the cost does not depend on the number of events.
            var last = last
            while let user = try connection.first(
                """
                SELECT least(
                    (SELECT user_id FROM event WHERE app_id = ?1 AND user_id > ?2 AND user_id IS NOT NULL
                        ORDER BY user_id LIMIT 1),
                    (SELECT min(value) FROM customer_identifier
                        WHERE app_id = ?1 AND name = 'registered' AND value > ?2))
                """, .text(appID), .text(last), row: { $0.optionalText(0) }
            ) ?? nil, !isEnough(user) {
                last = user
            }
        }
    }

    package func count() throws(GatewayError) -> Int64 {
        try read { connection in
            try connection.first("SELECT coalesce(sum(events), 0)::bigint FROM app_usage") { $0.int64(0) }
                ?? 0
        }
    }

    package func keyUses(of appID: String) throws(GatewayError) -> [KeyUse] {
        try read { connection in
            try connection.all(
                """
                SELECT key_id, sum(verified)::bigint, max(last_ms) FROM key_use WHERE app_id = ?1
                GROUP BY key_id ORDER BY key_id
                """, .text(appID)
            ) { row in
                KeyUse(
                    appID: appID, keyID: row.text(0), verified: row.int64(1), lastMilliseconds: row.int64(2))
            }
        }
    }
}

extension PostgreSQLEventLog {
    /// Follows events within the connection's current transaction, if any.
    static func follow(
        _ query: EventQuery, after sequence: Int64, limit: Int, at now: Date,
        _ connection: PostgreSQLConnection
    ) throws -> EventRange {
        let head = try EventHorizon.head(connection)
        var range = EventRange(scannedThrough: sequence)
        if sequence < head {
            range = try EventRows.scan(
                query, .after(sequence, through: head), limit: limit, at: now, connection)
        }
        // The floor is read after the events, so that a deletion during the read is reported.
        range.gap = EventGap(after: sequence, floor: try EventFloor.read(of: query.appID, connection))
        return range
    }
}
