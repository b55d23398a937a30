internal import CountersignCore
package import CountersignSQLite
package import GatewayModel

/// The rows of consumers and of the progress of ways, in SQL for all engines. An engine adds its leases.
package struct ConsumerRows {
    /// A consumer without its positions.
    package struct Row {
        package let id: EventConsumerID
        package let filter: EventFilter
        package let holdDays: Int?
        package let createdMilliseconds: Int64
        /// A gap before the position that no lease has reported yet.
        package let passedGap: EventGap
        /// The engine's own column.
        package let own: Int64

        package func settings(partitions: Int) -> EventConsumerSettings {
            EventConsumerSettings(filter: filter, partitions: partitions, holdDays: holdDays)
        }
    }

    package static let isIt = "app_id = ?1 AND kind = ?2 AND name = ?3"
    private static let hasCaughtUp = """
        (SELECT min(seq) FROM event_consumer_position WHERE \(isIt))
            >= coalesce((SELECT seq FROM event_floor WHERE event_floor.app_id = ?1), 0)
        """

    private let connection: any SQLConnection

    package init(_ connection: any SQLConnection) { self.connection = connection }

    package static func key(_ id: EventConsumerID) -> [SQLValue] {
        [.text(id.appID), .text(id.kind.rawValue), .text(id.name)]
    }

    package func run(_ sql: String, _ id: EventConsumerID, _ more: SQLValue...) throws {
        try connection.each(sql, Self.key(id) + more) { _ in true }
    }

    // MARK: Consumers

    package func ids(_ kind: EventConsumerID.Kind, of appID: String?) throws -> [EventConsumerID] {
        try connection.all(
            "SELECT app_id, name FROM event_consumer WHERE kind = ?1 AND app_id = coalesce(?2, app_id) "
                + "ORDER BY app_id, name",
            .text(kind.rawValue), .optionalText(appID)
        ) { EventConsumerID(appID: $0.text(0), kind: kind, name: $0.text(1)) }
    }

    package func count(_ kind: EventConsumerID.Kind, of appID: String) throws -> Int {
        try connection.first(
            "SELECT count(*) FROM event_consumer WHERE app_id = ?1 AND kind = ?2", .text(appID),
            .text(kind.rawValue)
        ) { $0.int(0) } ?? 0
    }

    /// `own` is the engine's own column.
    package func row(_ id: EventConsumerID, own: String = "0") throws -> Row? {
        try connection.all(
            """
            SELECT verdict, type, event_name, user_id, hold_days, created_ms,
                missed_ms IS NOT NULL AND \(Self.hasCaughtUp), \(own), claim
            FROM event_consumer WHERE \(Self.isIt)
            """, Self.key(id)
        ) { row in
            Row(
                id: id,
                filter: EventFilter(
                    verdict: row.optionalText(0).flatMap { VerdictFilter($0) }, type: row.optionalText(1),
                    name: row.optionalText(2), userID: row.optionalText(3),
                    claim: row.optionalText(8).flatMap { ClaimFilter($0) }),
                holdDays: row.optionalInt64(4).map { Int($0) }, createdMilliseconds: row.int64(5),
                passedGap: EventGap(isOpen: row.int(6) != 0), own: row.int64(7))
        }.first
    }

    /// Returns false when a consumer of this name exists. `own` is a value of the engine's own column.
    package func insert(
        _ id: EventConsumerID, _ settings: EventConsumerSettings, milliseconds: Int64,
        own: (column: String, value: Int64)? = nil
    ) throws -> Bool {
        let filter = settings.filter
        try run(
            """
            INSERT INTO event_consumer (app_id, kind, name, verdict, type, event_name, user_id, hold_days,
                created_ms, claim\(own.map { ", " + $0.column } ?? ""))
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10\(own.map { ", \($0.value)" } ?? "")) ON CONFLICT DO NOTHING
            """, id,
            .optionalText(filter.verdict?.word), .optionalText(filter.type), .optionalText(filter.name),
            .optionalText(filter.userID), .optionalInteger(settings.holdDays.map { Int64($0) }),
            .integer(milliseconds), .optionalText(filter.claim?.text))
        return connection.changes > 0
    }

    /// Returns false when the consumer does not exist.
    package func delete(_ id: EventConsumerID) throws -> Bool {
        // The consumer first, as in PostgreSQL's acknowledgements: another order could end in a deadlock.
        try run("DELETE FROM event_consumer WHERE \(Self.isIt)", id)
        let isDeleted = connection.changes > 0
        try run("DELETE FROM event_consumer_position WHERE \(Self.isIt)", id)
        return isDeleted
    }

    /// Records that a client has acknowledged events, and closes a gap that the position is not before.
    package func noteAccepted(_ id: EventConsumerID, atMilliseconds now: Int64) throws {
        try run(
            """
            UPDATE event_consumer SET delivered_ms = ?4,
                missed_ms = CASE WHEN missed_ms IS NULL OR \(Self.hasCaughtUp) THEN NULL ELSE missed_ms END
            WHERE \(Self.isIt)
            """, id, .integer(now))
    }

    /// Records a gap before the position. The next leased event reports it.
    package func noteGap(_ id: EventConsumerID, atMilliseconds now: Int64) throws {
        try run(
            "UPDATE event_consumer SET missed_ms = coalesce(missed_ms, ?4) WHERE \(Self.isIt)", id,
            .integer(now))
    }

    /// Closes a gap that the position is not before.
    package func noteCaughtUp(_ id: EventConsumerID) throws {
        try run(
            """
            UPDATE event_consumer SET missed_ms = NULL
            WHERE \(Self.isIt) AND missed_ms IS NOT NULL AND \(Self.hasCaughtUp)
            """, id)
    }

    // MARK: Progress of ways

    package func progress(_ kind: EventConsumerID.Kind) throws -> [EventConsumerID: DeliveryProgress] {
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
        // A gap is reported until a batch after it is confirmed, or while the position is below the oldest
        // event.
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
}
