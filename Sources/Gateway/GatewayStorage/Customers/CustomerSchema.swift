/// The tables of customers in `events.sqlite`.
enum CustomerSchema {
    static let script = tables + triggers

    private static let tables = """
        CREATE TABLE customer (
            id TEXT PRIMARY KEY,
            app_id TEXT NOT NULL,
            created_ms INTEGER NOT NULL,
            seen_ms INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX customer_seen ON customer (app_id, seen_ms);
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

    /// Triggers that maintain the size of each customer and their sum for each app, so that merges and deletions cannot
    /// be missed.
    private static let triggers =
        """
        CREATE TRIGGER customer_grows AFTER UPDATE OF bytes ON customer BEGIN
            INSERT INTO app_usage (app_id, events, bytes, customer_bytes)
                VALUES (new.app_id, 0, 0, new.bytes - old.bytes)
                ON CONFLICT (app_id) DO UPDATE SET customer_bytes = customer_bytes + excluded.customer_bytes;
        END;
        CREATE TRIGGER customer_goes AFTER DELETE ON customer BEGIN
            UPDATE app_usage SET customer_bytes = customer_bytes - old.bytes WHERE app_id = old.app_id;
        END;
        """
        + [
            ("customer_identifier", ["name", "value"]), ("customer_property", ["name", "value"]),
            ("inbox_read", ["message_id"]),
        ].map { table, columns in
            func size(_ row: String) -> String {
                "(" + columns.map { "length(CAST(\(row).\($0) AS BLOB))" }.joined(separator: " + ") + ")"
            }
            return """
                CREATE TRIGGER \(table)_comes AFTER INSERT ON \(table) BEGIN
                    UPDATE customer SET bytes = bytes + \(size("new")) WHERE id = new.customer_id;
                END;
                CREATE TRIGGER \(table)_changes AFTER UPDATE ON \(table) BEGIN
                    UPDATE customer SET bytes = bytes - \(size("old")) WHERE id = old.customer_id;
                    UPDATE customer SET bytes = bytes + \(size("new")) WHERE id = new.customer_id;
                END;
                CREATE TRIGGER \(table)_goes AFTER DELETE ON \(table) BEGIN
                    UPDATE customer SET bytes = bytes - \(size("old")) WHERE id = old.customer_id;
                END;
                """
        }.joined()

    /// A migration that counts the properties of each customer, and deletes the oldest properties beyond 1,000.
    static let propertyCount = """
        DELETE FROM customer_property WHERE (customer_id, name) IN (
            SELECT customer_id, name FROM (
                SELECT customer_id, name, row_number() OVER (
                    PARTITION BY customer_id ORDER BY updated_ms DESC, name) AS place
                FROM customer_property WHERE customer_id IN (
                    SELECT customer_id FROM customer_property GROUP BY customer_id HAVING count(*) > 1000))
            WHERE place > 1000);
        ALTER TABLE customer ADD COLUMN properties INTEGER NOT NULL DEFAULT 0;
        UPDATE customer SET properties = (
            SELECT count(*) FROM customer_property WHERE customer_id = customer.id);
        DROP TRIGGER customer_property_comes;
        CREATE TRIGGER customer_property_comes AFTER INSERT ON customer_property BEGIN
            UPDATE customer SET properties = properties + 1,
                bytes = bytes + length(CAST(new.name AS BLOB)) + length(CAST(new.value AS BLOB))
                WHERE id = new.customer_id;
        END;
        DROP TRIGGER customer_property_goes;
        CREATE TRIGGER customer_property_goes AFTER DELETE ON customer_property BEGIN
            UPDATE customer SET properties = properties - 1,
                bytes = bytes - (length(CAST(old.name AS BLOB)) + length(CAST(old.value AS BLOB)))
                WHERE id = old.customer_id;
        END;
        """
}
