/// The tables of consumers of events.
enum EventConsumerSchema {
    /// `event_floor` has, for each app, the position of the last event that retention has deleted.
    static let script = """
        CREATE TABLE event_consumer (
            app_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            verdict TEXT,
            type TEXT,
            event_name TEXT,
            user_id TEXT,
            hold_days BIGINT,
            created_ms BIGINT NOT NULL,
            missed_ms BIGINT,
            PRIMARY KEY (app_id, kind, name)
        );
        CREATE TABLE event_consumer_position (
            app_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            partition BIGINT NOT NULL,
            seq BIGINT NOT NULL,
            -- The lease of the partition, which may have expired: its last event, and the last examined event.
            lease_id TEXT,
            lease_last BIGINT,
            lease_reached BIGINT,
            lease_until_ms BIGINT,
            -- The lease that was acknowledged last, so that a client can repeat the acknowledgement.
            settled_id TEXT,
            settled_seq BIGINT,
            PRIMARY KEY (app_id, kind, name, partition),
            FOREIGN KEY (app_id, kind, name) REFERENCES event_consumer ON DELETE CASCADE
        );
        CREATE TABLE event_floor (
            app_id TEXT PRIMARY KEY,
            seq BIGINT NOT NULL
        );
        """
}
