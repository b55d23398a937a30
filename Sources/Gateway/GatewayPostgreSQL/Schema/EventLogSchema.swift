/// The tables of events, their ids and their counts.
///
/// An event's position is `base + (transaction id << 12 | ordinal)`, so writers share no row and no lock. Readers stop
/// before the oldest open transaction, so that they miss no event.
enum EventLogSchema {
    static let script = """
        -- The base of positions for each timeline of each cluster, because transaction ids may decrease when a standby
        -- is promoted. `reached` is the end of the positions used so far, and is updated once a minute.
        CREATE TABLE position_base (
            system_id BIGINT NOT NULL,
            timeline INT NOT NULL,
            base BIGINT NOT NULL,
            reached BIGINT NOT NULL DEFAULT 0,
            PRIMARY KEY (system_id, timeline)
        );
        CREATE FUNCTION own_base() RETURNS BIGINT LANGUAGE SQL STABLE AS $$
            SELECT base FROM countersign.position_base
            WHERE system_id = (SELECT system_identifier FROM pg_control_system())
            AND timeline = ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
        $$;

        CREATE TABLE event_log (
            only_row INT PRIMARY KEY CHECK (only_row = 1),
            id BYTEA NOT NULL
        );
        INSERT INTO event_log VALUES (1, uuid_send(gen_random_uuid()));

        -- The unique keys of events. `bucket` is the day in a UUIDv7, in days since 1970, or -16 to -1 for other ids.
        CREATE TABLE message_id (
            bucket INT NOT NULL,
            app_id TEXT NOT NULL,
            id TEXT NOT NULL,
            sender TEXT NOT NULL,
            position BIGINT NOT NULL,
            PRIMARY KEY (bucket, app_id, id, sender)
        ) PARTITION BY RANGE (bucket);
        CREATE TABLE message_id_other PARTITION OF message_id FOR VALUES FROM (MINVALUE) TO (0);
        CREATE TABLE message_id_default PARTITION OF message_id DEFAULT;
        -- Indexes that find the ids of deleted events. Partitions of a day are dropped as a whole instead.
        CREATE INDEX message_id_other_position ON message_id_other (app_id, position);
        CREATE INDEX message_id_default_position ON message_id_default (app_id, position);

        -- `day` is the day of receipt, in days since 1970.
        CREATE TABLE event (
            position BIGINT NOT NULL,
            day INT NOT NULL,
            app_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            type TEXT NOT NULL,
            user_id TEXT,
            anonymous_id TEXT,
            name TEXT,
            timestamp_ms BIGINT NOT NULL,
            received_ms BIGINT NOT NULL,
            sender TEXT,
            verdict TEXT,
            code INT,
            key_id TEXT,
            enforcement TEXT,
            dialect TEXT,
            request_id TEXT,
            token_id TEXT,
            body TEXT NOT NULL,
            PRIMARY KEY (app_id, position, day)
        ) PARTITION BY RANGE (day);
        CREATE INDEX event_user ON event (app_id, user_id, position) WHERE user_id IS NOT NULL;
        CREATE INDEX event_device ON event (app_id, anonymous_id, position)
            WHERE user_id IS NULL AND anonymous_id IS NOT NULL;
        CREATE TABLE event_default PARTITION OF event DEFAULT;

        -- A row for each writer number (`lane`), so that writers share no row. Row -1 subtracts deleted events.
        CREATE TABLE app_usage (
            app_id TEXT NOT NULL,
            lane INT NOT NULL,
            events BIGINT NOT NULL DEFAULT 0,
            bytes BIGINT NOT NULL DEFAULT 0,
            PRIMARY KEY (app_id, lane)
        ) WITH (fillfactor = 50);
        CREATE TABLE key_use (
            app_id TEXT NOT NULL,
            key_id TEXT NOT NULL,
            lane INT NOT NULL,
            verified BIGINT NOT NULL,
            last_ms BIGINT NOT NULL,
            PRIMARY KEY (app_id, key_id, lane)
        ) WITH (fillfactor = 50);
        CREATE TABLE probe (lane INT PRIMARY KEY, at_ms BIGINT NOT NULL);

        -- The position through which retention has deleted an app's events.
        CREATE TABLE retention_mark (app_id TEXT PRIMARY KEY, seq BIGINT NOT NULL);

        """

    /// Adds columns for the stored token claims of an event, and for the claim by which a consumer filters events.
    static let claims = """
        ALTER TABLE event ADD COLUMN claims TEXT;
        ALTER TABLE event_consumer ADD COLUMN claim TEXT;
        """
}
