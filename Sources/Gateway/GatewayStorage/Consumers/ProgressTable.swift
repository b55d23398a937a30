internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// The progress of ways in the rows of their consumers, in SQL for all engines.
package struct ProgressTable {
    private static let isIt = "app_id = ?1 AND kind = ?2 AND name = ?3"

    private let connection: any SQLConnection

    package init(_ connection: any SQLConnection) { self.connection = connection }

    package func all(_ kind: EventConsumerID.Kind) throws -> [EventConsumerID: DeliveryProgress] {
        let rows = try connection.all(
            """
            SELECT consumer.app_id, consumer.name, place.seq, message_id, through_seq, digest, revision, epoch,
                receiver_seq, failures, failing_since_ms, next_ms, delivered_ms, failed_ms, error, reason,
                CASE WHEN missed_ms IS NOT NULL AND place.seq >= coalesce(event_floor.seq, 0)
                    THEN 1 ELSE 0 END
            FROM event_consumer AS consumer
            JOIN event_consumer_position AS place ON place.app_id = consumer.app_id
                AND place.kind = consumer.kind AND place.name = consumer.name
            LEFT JOIN event_floor ON event_floor.app_id = consumer.app_id
            WHERE consumer.kind = ?1
            """, .text(kind.rawValue)
        ) { row in
            var progress = DeliveryProgress(committed: row.int64(2))
            progress.messageID = row.optionalText(3)
            progress.through = row.optionalInt64(4)
            progress.digest = row.optionalText(5)
            progress.revision = row.optionalInt64(6)
            progress.epoch = row.int64(7)
            progress.receiverSequence = row.int64(8)
            progress.failures = row.int(9)
            progress.failingSinceMilliseconds = row.optionalInt64(10)
            progress.nextMilliseconds = row.int64(11)
            progress.deliveredMilliseconds = row.optionalInt64(12)
            progress.failedMilliseconds = row.optionalInt64(13)
            progress.failure = row.optionalText(14).map { DeliveryFailure($0, row.optionalText(15) ?? "") }
            progress.gap = EventGap(isOpen: row.int(16) != 0)
            return (EventConsumerID(appID: row.text(0), kind: kind, name: row.text(1)), progress)
        }
        return Dictionary(rows) { $1 }
    }

    /// Stores progress. Does nothing for a way without a row.
    package func keep(
        _ progress: DeliveryProgress, of id: EventConsumerID, atMilliseconds now: Int64
    ) throws {
        // A gap stays noted until a batch after it was accepted, and below the floor, where retention notes it.
        let missed =
            progress.gap.isOpen
            ? "coalesce(missed_ms, \(now))"
            : """
            CASE WHEN \(progress.committed) < coalesce((SELECT seq FROM event_floor WHERE event_floor.app_id = ?1), 0)
                THEN missed_ms END
            """
        try run(
            """
            UPDATE event_consumer SET missed_ms = \(missed), message_id = ?4, through_seq = ?5, digest = ?6,
                revision = ?7, epoch = ?8, receiver_seq = ?9, failures = ?10, failing_since_ms = ?11,
                next_ms = ?12, delivered_ms = ?13, failed_ms = ?14, error = ?15, reason = ?16
            WHERE \(Self.isIt)
            """, id, .optionalText(progress.messageID), .optionalInteger(progress.through),
            .optionalText(progress.digest), .optionalInteger(progress.revision), .integer(progress.epoch),
            .integer(progress.receiverSequence), .integer(Int64(progress.failures)),
            .optionalInteger(progress.failingSinceMilliseconds), .integer(progress.nextMilliseconds),
            .optionalInteger(progress.deliveredMilliseconds), .optionalInteger(progress.failedMilliseconds),
            .optionalText(progress.failure?.code), .optionalText(progress.failure?.reason))
        try run(
            "UPDATE event_consumer_position SET seq = ?4 WHERE \(Self.isIt)", id,
            .integer(progress.committed))
    }

    package func setHold(_ days: Int?, of id: EventConsumerID) throws {
        try run(
            "UPDATE event_consumer SET hold_days = ?4 WHERE \(Self.isIt)", id,
            .optionalInteger(days.map { Int64($0) }))
    }

    private func run(_ sql: String, _ id: EventConsumerID, _ more: SQLValue...) throws {
        try connection.each(
            sql, [.text(id.appID), .text(id.kind.rawValue), .text(id.name)] + more
        ) { _ in true }
    }
}
