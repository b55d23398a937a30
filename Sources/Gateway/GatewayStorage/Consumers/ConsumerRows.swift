internal import CountersignCore
package import CountersignSQLite
package import GatewayModel

/// Reads and writes the rows of consumers and of webhooks, streams and event files (ways), in SQL for all engines.
package struct ConsumerRows {
    package struct Row: Sendable {
        package let id: EventConsumerID
        package let settings: EventConsumerSettings
        package let createdMilliseconds: Int64
        /// Changes after a seek of a consumer in SQLite, and when the consumer is deleted and created again.
        package let generation: Int64
        /// The position of each partition.
        package let positions: [Int64]
        /// For each partition, a gap (events deleted unread) before its position, until later events are acknowledged.
        package let passedGaps: [EventGap]
    }

    package static let isIt = "app_id = ?1 AND kind = ?2 AND name = ?3"

    /// The SQL value of `missed_ms`, which is cleared once the position has passed all deleted events.
    private static func missed(at position: String) -> String {
        """
        CASE WHEN \(position) >= coalesce((SELECT seq FROM event_floor WHERE event_floor.app_id = ?1), 0)
            THEN NULL ELSE missed_ms END
        """
    }

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

    /// Whether the consumer exists. Locks its row until the transaction ends. `lock` replaces the engine's lock clause.
    package func isThere(_ id: EventConsumerID, lock: String? = nil) throws -> Bool {
        try !connection.all(
            "SELECT 1 FROM event_consumer WHERE \(Self.isIt)\(lock ?? connection.forUpdate)", Self.key(id)
        ) { _ in true }.isEmpty
    }

    /// `generation` is the SQL column of the generation; `0` for an engine without generations.
    package func row(_ id: EventConsumerID, generation: String = "0") throws -> Row? {
        let positions = try connection.all(
            "SELECT seq, is_after_gap FROM event_consumer_position WHERE \(Self.isIt) ORDER BY partition",
            Self.key(id)
        ) { (sequence: $0.int64(0), gap: EventGap(isOpen: $0.int(1) != 0)) }
        return try connection.all(
            """
            SELECT verdict, type, event_name, user_id, hold_days, created_ms, \(generation), claim
            FROM event_consumer WHERE \(Self.isIt)
            """, Self.key(id)
        ) { row in
            let filter = EventFilter(
                verdict: row.optionalText(0).flatMap { VerdictFilter($0) }, type: row.optionalText(1),
                name: row.optionalText(2), userID: row.optionalText(3),
                claim: row.optionalText(7).flatMap { ClaimFilter($0) })
            return Row(
                id: id,
                settings: EventConsumerSettings(
                    filter: filter, partitions: positions.count,
                    holdDays: row.optionalInt64(4).map { Int($0) }), createdMilliseconds: row.int64(5),
                generation: row.int64(6), positions: positions.map(\.sequence),
                passedGaps: positions.map(\.gap))
        }.first
    }

    /// Returns false when a consumer of this name exists. `generation` is as in ``row(_:generation:)``.
    package func insert(
        _ id: EventConsumerID, _ settings: EventConsumerSettings, at sequence: Int64, generation: String,
        milliseconds: Int64
    ) throws -> Bool {
        let filter = settings.filter
        // A random generation, so that a lease on a deleted consumer is not valid for a new consumer of the same name.
        let hasGeneration = generation != "0"
        var values =
            Self.key(id) + [
                .optionalText(filter.verdict?.word), .optionalText(filter.type), .optionalText(filter.name),
                .optionalText(filter.userID), .optionalInteger(settings.holdDays.map { Int64($0) }),
                .integer(milliseconds), .optionalText(filter.claim?.text),
            ]
        if hasGeneration { values.append(.integer(.random(in: 0...(.max >> 1)))) }
        try connection.each(
            """
            INSERT INTO event_consumer (app_id, kind, name, verdict, type, event_name, user_id, hold_days,
                created_ms, claim\(hasGeneration ? ", \(generation)" : ""))
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10\(hasGeneration ? ", ?11" : ""))
            ON CONFLICT DO NOTHING
            """, values
        ) { _ in true }
        guard connection.changes > 0 else { return false }
        for partition in 0..<settings.partitions {
            try run(
                """
                INSERT INTO event_consumer_position (app_id, kind, name, partition, seq)
                VALUES (?1, ?2, ?3, ?4, ?5)
                """, id, .integer(Int64(partition)), .integer(sequence))
        }
        return true
    }

    /// Returns false when the consumer does not exist.
    package func delete(_ id: EventConsumerID) throws -> Bool {
        // Deletes the consumer's row first. PostgreSQL's acknowledgements lock in this order; another could deadlock.
        try run("DELETE FROM event_consumer WHERE \(Self.isIt)", id)
        // Without a deleted row, existing positions belong to a consumer that another transaction has created.
        guard connection.changes > 0 else { return false }
        try run("DELETE FROM event_consumer_position WHERE \(Self.isIt)", id)
        return true
    }

    package func setPositions(
        of id: EventConsumerID, to sequence: Int64, _ passedGap: EventGap = .none
    ) throws {
        try run(
            "UPDATE event_consumer_position SET seq = ?4, is_after_gap = ?5 WHERE \(Self.isIt)", id,
            .integer(sequence), .integer(passedGap.isOpen ? 1 : 0))
    }

    /// Advances a partition's position if it still is `from`. Returns whether the row was updated. `gap` is the gap
    /// among skipped events, and is stored if open. A nil `gap` means that the events were acknowledged, which clears
    /// the stored gap if the position advances. `also` has further assignments, and `condition` a further condition.
    /// Their `values` begin with parameter `?7`.
    package func move(
        _ id: EventConsumerID, _ partition: Int, from: Int64, to sequence: Int64, gap: EventGap?,
        also: String = "", if condition: String, _ values: SQLValue...
    ) throws -> Bool {
        let isAfterGap =
            gap.map { $0.isOpen ? "1" : "is_after_gap" } ?? "CASE WHEN ?6 > seq THEN 0 ELSE is_after_gap END"
        try connection.each(
            """
            UPDATE event_consumer_position SET seq = ?6, is_after_gap = \(isAfterGap)\(also)
            WHERE \(Self.isIt) AND partition = ?4 AND seq = ?5 AND \(condition)
            """,
            Self.key(id) + [.integer(Int64(partition)), .integer(from), .integer(sequence)] + values
        ) { _ in true }
        return connection.changes > 0
    }

    /// Updates `missed_ms` after positions have changed. After an acknowledgement, also stores its time.
    package func noteMoved(_ id: EventConsumerID, deliveredMilliseconds: Int64? = nil) throws {
        let missed = Self.missed(at: "(SELECT min(seq) FROM event_consumer_position WHERE \(Self.isIt))")
        try run(
            """
            UPDATE event_consumer SET missed_ms = \(missed), delivered_ms = coalesce(?4, delivered_ms)
            WHERE \(Self.isIt)
            """, id, .optionalInteger(deliveredMilliseconds))
    }

    // MARK: Progress of ways

    package func progress(_ kind: EventConsumerID.Kind) throws -> [EventConsumerID: DeliveryProgress] {
        let rows = try connection.all(
            """
            SELECT consumer.app_id, consumer.name, place.seq, message_id, through_seq, digest, revision, epoch,
                receiver_seq, failures, failing_since_ms, next_ms, delivered_ms, failed_ms, error, reason,
                is_after_gap
            FROM event_consumer AS consumer
            JOIN event_consumer_position AS place ON place.app_id = consumer.app_id
                AND place.kind = consumer.kind AND place.name = consumer.name
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

    /// Stores the progress of a way. Does nothing for a way without a row.
    package func keep(_ progress: DeliveryProgress, of id: EventConsumerID) throws {
        let missed = Self.missed(at: "?17")
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
            .optionalText(progress.failure?.code), .optionalText(progress.failure?.reason),
            .integer(progress.gap.isOpen ? -1 : progress.committed))
        try setPositions(of: id, to: progress.committed, progress.gap)
    }

    package func setHold(_ days: Int?, of id: EventConsumerID) throws {
        try run(
            "UPDATE event_consumer SET hold_days = ?4 WHERE \(Self.isIt)", id,
            .optionalInteger(days.map { Int64($0) }))
    }
}
