/// The tables of customers in `events.sqlite`.
enum CustomerSchema {
    static let script = """
        CREATE TABLE customer (
            id TEXT PRIMARY KEY,
            app_id TEXT NOT NULL,
            created_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE customer_identifier (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            app_id TEXT NOT NULL,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            customer_id TEXT NOT NULL,
            UNIQUE (app_id, name, value)
        ) STRICT;
        CREATE INDEX customer_identifier_of ON customer_identifier (customer_id, name);
        CREATE TABLE customer_property (
            customer_id TEXT NOT NULL,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            updated_ms INTEGER NOT NULL,
            PRIMARY KEY (customer_id, name)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE customer_merge (
            source_id TEXT PRIMARY KEY,
            destination_id TEXT NOT NULL,
            merged_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX customer_merge_into ON customer_merge (destination_id);
        CREATE TABLE inbox_read (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            customer_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            read_ms INTEGER NOT NULL,
            UNIQUE (customer_id, message_id)
        ) STRICT;
        """
}
