internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel
package import GatewayStorage

/// Reads stored events up to the oldest open transaction.
package struct PostgreSQLEventLog: EventLog {
    let pool: PostgreSQLPool
    let now: @Sendable () -> Date
    /// The maximum time that the last page of an export waits for open transactions, in seconds.
    var patience = 1.0

    private func read<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws(GatewayError) -> Value {
        try GatewayError.storing { try pool.use { try body($0) } }
    }

    package func newest(
        _ query: EventQuery, before sequence: Int64?, limit: Int
    ) throws(GatewayError) -> EventPage {
        // Pages in descending order are not continued later, so committed events are shown even if an earlier
        // transaction is open.
        try read {
            try EventRows.page(query, .before(sequence ?? .max), limit: limit, at: now(), $0)
        }
    }

    package func oldest(
        _ query: EventQuery, after sequence: Int64, limit: Int
    ) throws(GatewayError) -> EventPage {
        try read { connection in
            let page = try page(query, after: sequence, limit: limit, connection)
            // An export must contain all events acknowledged before it began, so open transactions are
            // awaited.
            guard page.next == nil, try EventHorizon.waitForTransactions(connection, seconds: patience) else {
                return page
            }
            return try self.page(query, after: sequence, limit: limit, connection)
        }
    }

    private func page(
        _ query: EventQuery, after sequence: Int64, limit: Int, _ connection: PostgreSQLConnection
    ) throws -> EventPage {
        // Uses one snapshot, so that a concurrent deletion is reported as a gap.
        try connection.transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") {
            let head = try EventHorizon.head(connection)
            var page = try EventRows.page(
                query, .after(sequence, through: head), limit: limit, at: now(), connection)
            page.gap = EventGap(after: sequence, floor: try Self.floor(of: query.appID, connection))
            return page
        }
    }

    package func gap(after sequence: Int64, of appID: String) throws(GatewayError) -> EventGap {
        try read { EventGap(after: sequence, floor: try Self.floor(of: appID, $0)) }
    }

    package func follow(
        _ following: EventFollowing, after sequence: Int64, limit: Int
    ) throws(GatewayError) -> EventRange {
        try read { try Self.follow(following, after: sequence, limit: limit, $0) }
    }

    package func positions() throws(GatewayError) -> EventPositions {
        try read { connection in
            EventPositions(
                logID: try connection.first("SELECT id FROM event_log") { $0.blob(0) } ?? [],
                head: try EventHorizon.head(connection))
        }
    }

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
        _ following: EventFollowing, after sequence: Int64, limit: Int, _ connection: PostgreSQLConnection
    ) throws -> EventRange {
        let head = try EventHorizon.head(connection)
        var stretch = EventRange(reached: sequence)
        // Must be read after the head, so that events deleted before it count as readable.
        stretch.gap = EventGap(after: sequence, floor: try floor(of: following.appID, connection))
        guard sequence < head else { return stretch }
        var page = EventRows(limit: limit)
        while true {
            let most = min(EventRows.rowsPerStep, EventPage.mostLooked - stretch.looked)
            let (values, sql) = statement(following, after: stretch.reached, through: head, most: most)
            var count = 0
            try connection.each(sql, values) { row in
                if page.isFull { return false }
                count += 1
                stretch.looked += 1
                stretch.reached = row.int64(0)
                if EventRows.matches(row), isIn(following.partition, row) { page.add(row) }
                return true
            }
            if page.isFull || stretch.looked >= EventPage.mostLooked {
                stretch.hasMore = stretch.reached < head
                stretch.events = page.events
                return stretch
            }
            if count < most {
                stretch.reached = head
                stretch.events = page.events
                return stretch
            }
        }
    }

    /// The last event of an app that retention has deleted.
    private static func floor(of appID: String, _ connection: PostgreSQLConnection) throws -> Int64 {
        try connection.first("SELECT seq FROM event_floor WHERE app_id = ?1", .text(appID)) { $0.int64(0) }
            ?? 0
    }

    private static func statement(
        _ following: EventFollowing, after sequence: Int64, through head: Int64, most: Int
    ) -> (Parameters, String) {
        var values: [SQLValue] = [.text(following.appID), .integer(sequence), .integer(head)]
        var range = "app_id = ?1 AND position > ?2 AND position <= ?3"
        var conditions: [String] = []
        if let user = following.filter.userID {
            values.append(.text(user))
            // Excludes events that were assigned to the user later.
            range += " AND user_id = ?\(values.count)"
            conditions.append("sender IS DISTINCT FROM '\(EventSender.anonymousContent)'")
        }
        for (column, value) in [("type", following.filter.type), ("name", following.filter.name)] {
            guard let value else { continue }
            values.append(.text(value))
            conditions.append("\(column) IS NOT DISTINCT FROM ?\(values.count)")
        }
        if let verdict = following.filter.verdict { conditions.append(EventRows.condition(verdict)) }
        if let claim = following.filter.claim { conditions.append(EventRows.condition(claim, &values)) }
        return (
            Parameters(values),
            """
            SELECT \(EventRows.columns(matching: conditions)) FROM event
            WHERE \(range) ORDER BY position LIMIT \(most)
            """
        )
    }

    /// Whether an event is in a partition. An event that was assigned to a user later stays in the partition
    /// of its device. Otherwise it could be skipped or read twice.
    private static func isIn(_ partition: EventPartition, _ row: PostgreSQLRow) -> Bool {
        guard partition.count > 1 else { return true }
        let wasAnonymous = row.optionalText(EventRows.sender) == EventSender.anonymousContent
        let id =
            (wasAnonymous ? nil : row.optionalText(EventRows.userID)) ?? row.optionalText(
                EventRows.anonymousID) ?? ""
        return EventPartition.index(of: id, count: partition.count) == partition.index
    }
}
