internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

/// The consumers that retention waits for, by the rule of SQLite's `RetentionHold`.
///
/// Within the transaction of a step of a sweep, on its connection.
enum RetentionHold {
    struct Holder {
        let id: EventConsumerID
        /// The lowest position of its partitions.
        let position: Int64
        let holdDays: Int64
        /// Whether the loss of an event was already reported.
        let isTold: Bool
    }

    static func all(of appID: String, _ connection: any SQLConnection) throws -> [Holder] {
        try connection.all(
            """
            SELECT kind, name, hold_days, missed_ms IS NOT NULL,
                (SELECT min(seq) FROM event_consumer_position AS position
                WHERE position.app_id = event_consumer.app_id AND position.kind = event_consumer.kind
                AND position.name = event_consumer.name)
            FROM event_consumer WHERE app_id = ?1 AND hold_days IS NOT NULL ORDER BY kind, name
            """, .text(appID)
        ) { row in
            EventConsumerID.Kind(rawValue: row.text(0)).map { kind in
                Holder(
                    id: EventConsumerID(appID: appID, kind: kind, name: row.text(1)), position: row.int64(4),
                    holdDays: row.int64(2), isTold: row.int(3) != 0)
            }
        }.compactMap(\.self)
    }

    /// Stores the last deleted event of an app. Returns the holders that have lost an event, once each.
    static func noteDeleted(
        through sequence: Int64, of appID: String, atMilliseconds now: Int64, _ holders: [Holder],
        _ connection: any SQLConnection
    ) throws -> [EventConsumerID] {
        try connection.run(
            """
            INSERT INTO event_floor VALUES (?1, ?2)
            ON CONFLICT (app_id) DO UPDATE SET seq = greatest(event_floor.seq, excluded.seq)
            """, .text(appID), .integer(sequence))
        let passed = holders.filter { !$0.isTold && $0.position < sequence }.map(\.id)
        for id in passed {
            try connection.run(
                "UPDATE event_consumer SET missed_ms = ?4 WHERE app_id = ?1 AND kind = ?2 AND name = ?3",
                .text(appID), .text(id.kind.rawValue), .text(id.name), .integer(now))
        }
        return passed
    }
}
