enum ClusterTables {
    /// The row of `generation` that is incremented to make gateways synchronize.
    static let kind = "cluster"

    /// An SQL expression for the database's time, in milliseconds since 1970.
    static let now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    /// An SQL expression for a number that increases with each change that gateways must read.
    static let generation =
        "(SELECT sum(number)::bigint FROM generation WHERE kind IN ('control', 'secrets', '\(kind)'))"
    static let channels = [DataKind.control.channel, DataKind.secrets.channel, "countersign_cluster"]

    static let script = """
        -- Times are by the database's clock. `generation` is the last change that the gateway has loaded.
        CREATE TABLE gateway (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            version TEXT NOT NULL,
            url TEXT,
            admin_url TEXT,
            started_ms BIGINT NOT NULL,
            seen_ms BIGINT NOT NULL,
            clock_offset_ms BIGINT NOT NULL DEFAULT 0,
            generation BIGINT NOT NULL DEFAULT 0,
            reader_lag_ms BIGINT NOT NULL DEFAULT 0,
            duties TEXT NOT NULL DEFAULT ''
        ) WITH (fillfactor = 50);
        CREATE TABLE cluster_note (
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            body TEXT NOT NULL,
            changed_ms BIGINT NOT NULL,
            PRIMARY KEY (kind, name)
        );
        INSERT INTO generation VALUES ('\(kind)', 1);

        """

    /// Adds transient messages between gateways, and each gateway's traffic of the last minute.
    static let talk = """
        -- `number` counts the messages of one gateway.
        CREATE UNLOGGED TABLE cluster_message (
            gateway TEXT NOT NULL,
            number BIGINT NOT NULL,
            kind TEXT NOT NULL,
            body TEXT NOT NULL,
            sent_ms BIGINT NOT NULL,
            PRIMARY KEY (gateway, number)
        ) WITH (fillfactor = 50);
        ALTER TABLE gateway ADD COLUMN accepted BIGINT NOT NULL DEFAULT 0,
            ADD COLUMN rejected BIGINT NOT NULL DEFAULT 0, ADD COLUMN events BIGINT NOT NULL DEFAULT 0;

        """

    /// Adds whether a gateway can decrypt secrets; 0 for gateways of earlier versions.
    static let seals = "ALTER TABLE gateway ADD COLUMN opens_seals BIGINT NOT NULL DEFAULT 0"

    /// Replaces the table of session history by a view that discards the writes of earlier versions.
    static let sessionHistory = """
        DROP TABLE session_audit;
        CREATE VIEW session_audit AS
            SELECT NULL::bigint AS at_ms, none AS app_id, none AS session_id, none AS action,
                NULL::bigint AS generation, none AS address
            FROM (SELECT NULL::text COLLATE "C" AS none) AS text WHERE false;
        CREATE RULE nothing_is_written AS ON INSERT TO session_audit DO INSTEAD NOTHING;
        CREATE RULE nothing_is_deleted AS ON DELETE TO session_audit DO INSTEAD NOTHING;

        """
}
