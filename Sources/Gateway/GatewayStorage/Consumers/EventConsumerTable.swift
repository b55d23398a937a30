internal import CountersignSQLite
internal import GatewayModel

/// Consumers in `events.sqlite`, with their positions. Leases are in memory.
struct EventConsumerTable {
    /// A consumer. The generation changes with each seek, which invalidates leases.
    struct Row {
        let id: EventConsumerID
        let settings: EventConsumerSettings
        let createdMilliseconds: Int64
        let generation: Int64
        let positions: [Int64]
        let passedGap: EventGap
    }

    private static let isIt = ConsumerRows.isIt

    let sqlite: SQLiteConnection
    let rows: ConsumerRows

    init(sqlite: SQLiteConnection) {
        self.sqlite = sqlite
        rows = ConsumerRows(sqlite)
    }

    func row(_ id: EventConsumerID) throws -> Row? {
        let positions = try sqlite.all(
            "SELECT seq FROM event_consumer_position WHERE \(Self.isIt) ORDER BY partition",
            ConsumerRows.key(id)
        ) { $0.int64(0) }
        return try rows.row(id, own: "generation").map { row in
            Row(
                id: id, settings: row.settings(partitions: positions.count),
                createdMilliseconds: row.createdMilliseconds, generation: row.own, positions: positions,
                passedGap: row.passedGap)
        }
    }

    /// Returns false when a consumer of this name exists.
    func insert(
        _ id: EventConsumerID, _ settings: EventConsumerSettings, at sequence: Int64, milliseconds: Int64
    ) throws -> Bool {
        // A random generation, so that a lease on a deleted consumer is not valid for a new consumer of the
        // same name.
        let isNew = try rows.insert(
            id, settings, milliseconds: milliseconds, own: ("generation", .random(in: 0...(.max >> 1))))
        guard isNew else { return false }
        for partition in 0..<settings.partitions {
            try rows.run(
                "INSERT INTO event_consumer_position VALUES (?1, ?2, ?3, ?4, ?5)", id,
                .integer(Int64(partition)), .integer(sequence))
        }
        return true
    }

    func seek(_ id: EventConsumerID, to sequence: Int64) throws {
        try rows.run("UPDATE event_consumer SET generation = generation + 1 WHERE \(Self.isIt)", id)
        try place(id, after: sequence)
    }

    func place(_ id: EventConsumerID, after sequence: Int64) throws {
        try rows.run(
            "UPDATE event_consumer_position SET seq = ?4 WHERE \(Self.isIt)", id, .integer(sequence))
        try rows.noteCaughtUp(id)
    }

    /// Advances a position. Returns false if the position or the generation has changed since the lease.
    func move(
        _ id: EventConsumerID, _ partition: Int, from: Int64, to: Int64, generation: Int64
    ) throws -> Bool {
        try rows.run(
            """
            UPDATE event_consumer_position SET seq = ?6 WHERE \(Self.isIt) AND partition = ?4 AND seq = ?5
            AND EXISTS (SELECT 1 FROM event_consumer WHERE \(Self.isIt) AND generation = ?7)
            """, id, .integer(Int64(partition)), .integer(from), .integer(to), .integer(generation))
        return sqlite.changes > 0
    }
}
