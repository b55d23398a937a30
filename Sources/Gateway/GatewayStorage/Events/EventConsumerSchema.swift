internal import CountersignSQLite

/// The tables of consumers in `events.sqlite`.
enum EventConsumerSchema {
    static let script = """
        CREATE TABLE event_consumer (
            app_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            verdict TEXT,
            type TEXT,
            event_name TEXT,
            user_id TEXT,
            hold_days INTEGER,
            created_ms INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            missed_ms INTEGER,
            PRIMARY KEY (app_id, kind, name)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE event_consumer_position (
            app_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            partition INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            PRIMARY KEY (app_id, kind, name, partition)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE event_floor (
            app_id TEXT PRIMARY KEY,
            seq INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """
}

/// For each app, the sequence number of the last event that retention has deleted. For SQLite and PostgreSQL.
package enum EventFloor {
    package static func read(of appID: String, _ connection: any SQLConnection) throws -> Int64 {
        try connection.first("SELECT seq FROM event_floor WHERE app_id = ?1", .text(appID)) { $0.int64(0) }
            ?? 0
    }

    static func raise(_ appID: String, to sequence: Int64, _ connection: any SQLConnection) throws {
        try connection.run(
            """
            INSERT INTO event_floor VALUES (?1, ?2)
            ON CONFLICT (app_id) DO UPDATE SET seq = excluded.seq WHERE excluded.seq > event_floor.seq
            """, .text(appID), .integer(sequence))
    }
}
