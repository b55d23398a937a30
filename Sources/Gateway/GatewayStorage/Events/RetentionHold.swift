internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// The consumers that hold an app's events, in one step of a sweep. An expired event stays until all of these consumers
/// have read it. Each consumer holds events at most for the days of its hold beyond the app's retention.
package struct RetentionHold {
    private struct Holder {
        let id: EventConsumerID
        let position: Int64
        /// Events received before this time, in milliseconds since 1970, are not held.
        let cutoff: Int64
        /// Whether the consumer's loss was already reported, and the consumer has not read beyond the loss since.
        let isReported: Bool
    }

    private static let dayMilliseconds: Int64 = 86_400_000

    private let appID: String
    private let nowMilliseconds: Int64
    private let holders: [Holder]
    private var deleted: Int64 = 0

    package init(
        of appID: String, _ connection: any SQLConnection, nowMilliseconds: Int64, days: Int
    ) throws {
        self.appID = appID
        self.nowMilliseconds = nowMilliseconds
        holders = try connection.all(
            """
            SELECT kind, name, hold_days, missed_ms IS NOT NULL,
                (SELECT min(seq) FROM event_consumer_position AS position
                WHERE position.app_id = event_consumer.app_id AND position.kind = event_consumer.kind
                AND position.name = event_consumer.name),
                coalesce((SELECT seq FROM event_floor WHERE event_floor.app_id = ?1), 0)
            FROM event_consumer WHERE app_id = ?1 AND hold_days IS NOT NULL ORDER BY kind, name
            """, .text(appID)
        ) { row in
            EventConsumerID.Kind(rawValue: row.text(0)).map { kind in
                Holder(
                    id: EventConsumerID(appID: appID, kind: kind, name: row.text(1)), position: row.int64(4),
                    cutoff: nowMilliseconds - (Int64(days) + row.int64(2)) * Self.dayMilliseconds,
                    isReported: row.int(3) != 0 && row.int64(4) < row.int64(5))
            }
        }.compactMap(\.self)
    }

    package func holds(_ sequence: Int64, received: Int64) -> Bool {
        holders.contains { sequence > $0.position && received >= $0.cutoff }
    }

    /// Sequence numbers must ascend.
    package mutating func noteDeleted(_ sequence: Int64) { deleted = sequence }

    /// Consumers that have lost an event, excluding consumers with a loss that was already reported.
    package var newlyPassed: [EventConsumerID] {
        holders.filter { !$0.isReported && $0.position < deleted }.map(\.id)
    }

    /// Stores the last deleted event and the consumers that lost events, in the transaction of the deletion.
    package func write(_ connection: any SQLConnection) throws {
        guard deleted > 0 else { return }
        try EventFloor.raise(appID, to: deleted, connection)
        for id in newlyPassed {
            try connection.run(
                "UPDATE event_consumer SET missed_ms = ?4 WHERE app_id = ?1 AND kind = ?2 AND name = ?3",
                .text(appID), .text(id.kind.rawValue), .text(id.name), .integer(nowMilliseconds))
        }
    }
}
