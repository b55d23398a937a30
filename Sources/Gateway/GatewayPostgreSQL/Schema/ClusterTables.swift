enum ClusterTables {
    /// The kind of the row of `generation` that ``PostgreSQLCluster/waitForGateways()`` increments.
    static let kind = "cluster"

    /// An SQL expression for the database's time, in milliseconds since 1970.
    static let now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    /// An SQL expression for a number that increases with each change that gateways must read.
    static let generation =
        "(SELECT sum(number)::bigint FROM generation WHERE kind IN ('control', 'secrets', '\(kind)'))"
    static let channels = [DataKind.control.channel, DataKind.secrets.channel, "countersign_cluster"]

    static let script = """
        -- The number of transactions that have changed each kind of data. Exclusive transactions lock the kind's row.
        CREATE TABLE generation (kind TEXT PRIMARY KEY, number BIGINT NOT NULL) WITH (fillfactor = 50);
        INSERT INTO generation SELECT kind, 1 FROM unnest(ARRAY[\(kinds)]) AS kind;
        -- Times are by the database's clock. `generation` is the last change that the gateway has loaded. `accepted`,
        -- `rejected` and `events` are the traffic of the last minute. `opens_seals` is always 1, because gateways of
        -- earlier versions store plain secrets while a running gateway has 0.
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
            duties TEXT NOT NULL DEFAULT '',
            accepted BIGINT NOT NULL DEFAULT 0,
            rejected BIGINT NOT NULL DEFAULT 0,
            events BIGINT NOT NULL DEFAULT 0,
            opens_seals BIGINT NOT NULL DEFAULT 0
        ) WITH (fillfactor = 50);
        CREATE TABLE cluster_note (
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            body TEXT NOT NULL,
            changed_ms BIGINT NOT NULL,
            PRIMARY KEY (kind, name)
        );
        -- Transient messages. `number` counts the messages of one gateway.
        CREATE UNLOGGED TABLE cluster_message (
            gateway TEXT NOT NULL,
            number BIGINT NOT NULL,
            kind TEXT NOT NULL,
            body TEXT NOT NULL,
            sent_ms BIGINT NOT NULL,
            PRIMARY KEY (gateway, number)
        ) WITH (fillfactor = 50);

        """

    private static let kinds = (DataKind.allCases.map(\.rawValue) + [kind]).map { "'\($0)'" }
        .joined(separator: ", ")
}
