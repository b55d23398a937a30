internal import CountersignSQLite
internal import GatewayModel

/// The rows of consumers.
struct EventConsumerTable {
    /// A consumer. The generation changes with each seek, which invalidates leases.
    struct Row {
        let id: EventConsumerID
        let settings: EventConsumerSettings
        let createdMilliseconds: Int64
        let generation: Int64
        let positions: [Int64]
        /// A gap before the position that no lease has reported yet.
        let passedGap: EventGap
    }

    let sqlite: SQLiteConnection

    private static func key(_ id: EventConsumerID) -> [SQLValue] {
        [.text(id.appID), .text(id.kind.rawValue), .text(id.name)]
    }

    private static let isIt = "app_id = ?1 AND kind = ?2 AND name = ?3"

    private func run(_ sql: String, _ id: EventConsumerID, _ more: SQLValue...) throws {
        let statement = try sqlite.cached(sql)
        defer { statement.reset() }
        try statement.bind(Self.key(id) + more)
        while try statement.step() {}
    }

    func rows(_ kind: EventConsumerID.Kind, of appID: String?) throws -> [Row] {
        try sqlite.all(
            "SELECT app_id, name FROM event_consumer WHERE kind = ?1 AND app_id = coalesce(?2, app_id) "
                + "ORDER BY app_id, name",
            .text(kind.rawValue), .optionalText(appID)
        ) { EventConsumerID(appID: $0.text(0), kind: kind, name: $0.text(1)) }.compactMap { try row($0) }
    }

    func count(_ kind: EventConsumerID.Kind, of appID: String) throws -> Int {
        try sqlite.first(
            "SELECT count(*) FROM event_consumer WHERE app_id = ?1 AND kind = ?2", .text(appID),
            .text(kind.rawValue)
        ) { $0.int(0) } ?? 0
    }

    func row(_ id: EventConsumerID) throws -> Row? {
        let positions = try sqlite.all(
            "SELECT seq FROM event_consumer_position WHERE \(Self.isIt) ORDER BY partition", Self.key(id)
        ) { $0.int64(0) }
        return try sqlite.all(
            """
            SELECT verdict, type, event_name, user_id, hold_days, created_ms, generation,
                missed_ms IS NOT NULL AND (SELECT min(seq) FROM event_consumer_position WHERE \(Self.isIt))
                    >= coalesce((SELECT seq FROM event_floor WHERE app_id = ?1), 0)
            FROM event_consumer WHERE \(Self.isIt)
            """, Self.key(id)
        ) { row in
            let filter = EventFilter(
                verdict: row.optionalText(0).flatMap { VerdictFilter($0) }, type: row.optionalText(1),
                name: row.optionalText(2), userID: row.optionalText(3))
            return Row(
                id: id,
                settings: EventConsumerSettings(
                    filter: filter, partitions: positions.count,
                    holdDays: row.optionalInt64(4).map { Int($0) }),
                createdMilliseconds: row.int64(5), generation: row.int64(6), positions: positions,
                passedGap: EventGap(isOpen: row.int(7) != 0))
        }.first
    }

    func insert(
        _ id: EventConsumerID, _ settings: EventConsumerSettings, at sequence: Int64, milliseconds: Int64
    ) throws {
        let filter = settings.filter
        // A random generation, so that a lease on a deleted consumer is not valid for a new consumer of the
        // same name.
        try run(
            """
            INSERT INTO event_consumer (app_id, kind, name, verdict, type, event_name, user_id, hold_days,
                created_ms, generation)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            """, id,
            .optionalText(filter.verdict?.word), .optionalText(filter.type), .optionalText(filter.name),
            .optionalText(filter.userID), .optionalInteger(settings.holdDays.map { Int64($0) }),
            .integer(milliseconds), .integer(.random(in: 0...(.max >> 1))))
        for partition in 0..<settings.partitions {
            try run(
                "INSERT INTO event_consumer_position VALUES (?1, ?2, ?3, ?4, ?5)", id,
                .integer(Int64(partition)), .integer(sequence))
        }
    }

    func setFilter(_ filter: EventFilter, of id: EventConsumerID) throws {
        try run(
            """
            UPDATE event_consumer SET verdict = ?4, type = ?5, event_name = ?6, user_id = ?7 WHERE \(Self.isIt)
            """, id, .optionalText(filter.verdict?.word), .optionalText(filter.type),
            .optionalText(filter.name), .optionalText(filter.userID))
    }

    func seek(_ id: EventConsumerID, to sequence: Int64) throws {
        try run("UPDATE event_consumer SET generation = generation + 1 WHERE \(Self.isIt)", id)
        try place(id, after: sequence)
    }

    func place(_ id: EventConsumerID, after sequence: Int64) throws {
        try run("UPDATE event_consumer_position SET seq = ?4 WHERE \(Self.isIt)", id, .integer(sequence))
        try noteCaughtUp(id)
    }

    func delete(_ id: EventConsumerID) throws {
        try run("DELETE FROM event_consumer WHERE \(Self.isIt)", id)
        try run("DELETE FROM event_consumer_position WHERE \(Self.isIt)", id)
    }

    /// Advances a position after an acknowledgement. Returns false if the position or the generation has
    /// changed since the lease.
    func move(
        _ id: EventConsumerID, _ partition: Int, from: Int64, to: Int64, generation: Int64
    ) throws -> Bool {
        guard try place(id, partition, from: from, to: to, generation: generation) else { return false }
        try noteCaughtUp(id)
        return true
    }

    /// Advances a position over events that do not match the filter. The next leased event reports a gap
    /// among them.
    func pass(
        _ id: EventConsumerID, _ partition: Int, from: Int64, to: Int64, generation: Int64, gap: EventGap,
        atMilliseconds now: Int64
    ) throws {
        guard try place(id, partition, from: from, to: to, generation: generation), gap.isOpen else { return }
        try run(
            "UPDATE event_consumer SET missed_ms = coalesce(missed_ms, ?4) WHERE \(Self.isIt)", id,
            .integer(now))
    }

    private func place(
        _ id: EventConsumerID, _ partition: Int, from: Int64, to: Int64, generation: Int64
    ) throws -> Bool {
        try run(
            """
            UPDATE event_consumer_position SET seq = ?6 WHERE \(Self.isIt) AND partition = ?4 AND seq = ?5
            AND EXISTS (SELECT 1 FROM event_consumer WHERE \(Self.isIt) AND generation = ?7)
            """, id, .integer(Int64(partition)), .integer(from), .integer(to), .integer(generation))
        return sqlite.changes > 0
    }

    private func noteCaughtUp(_ id: EventConsumerID) throws {
        try run(
            """
            UPDATE event_consumer SET missed_ms = NULL WHERE \(Self.isIt) AND missed_ms IS NOT NULL
            AND (SELECT min(seq) FROM event_consumer_position WHERE \(Self.isIt))
                >= coalesce((SELECT seq FROM event_floor WHERE app_id = ?1), 0)
            """, id)
    }
}
