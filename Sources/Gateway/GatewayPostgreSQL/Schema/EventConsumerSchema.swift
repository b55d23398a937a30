/// The tables of consumers of events.
enum EventConsumerSchema {
    /// `event_floor` has the last event of each app that retention has deleted.
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
            -- The lease that there is, expired or not: its last event, and up to where was looked.
            lease_id TEXT,
            lease_last BIGINT,
            lease_reached BIGINT,
            lease_until_ms BIGINT,
            -- The lease that was acknowledged last, for whoever has not heard the answer.
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
