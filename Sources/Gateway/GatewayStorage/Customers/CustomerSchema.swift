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

    /// Adds the last activity and size of each customer, and the total size for each app. Triggers maintain
    /// the sizes, so that merges and deletions cannot be missed. Existing customers count as active now.
    static let usage = """
        ALTER TABLE app_usage ADD COLUMN customer_bytes INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE customer ADD COLUMN seen_ms INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE customer ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
        UPDATE customer SET seen_ms = max(created_ms, CAST(strftime('%s', 'now') AS INTEGER) * 1000), bytes =
            coalesce((SELECT sum(length(CAST(name AS BLOB)) + length(CAST(value AS BLOB)))
                FROM customer_identifier WHERE customer_id = customer.id), 0)
            + coalesce((SELECT sum(length(CAST(name AS BLOB)) + length(CAST(value AS BLOB)))
                FROM customer_property WHERE customer_id = customer.id), 0)
            + coalesce((SELECT sum(length(CAST(message_id AS BLOB)))
                FROM inbox_read WHERE customer_id = customer.id), 0);
        INSERT INTO app_usage (app_id, events, bytes, customer_bytes)
            SELECT app_id, 0, 0, sum(bytes) FROM customer WHERE true GROUP BY app_id
            ON CONFLICT (app_id) DO UPDATE SET customer_bytes = excluded.customer_bytes;
        CREATE INDEX customer_seen ON customer (app_id, seen_ms);
        CREATE TRIGGER customer_grows AFTER UPDATE OF bytes ON customer BEGIN
            INSERT INTO app_usage (app_id, events, bytes, customer_bytes)
                VALUES (new.app_id, 0, 0, new.bytes - old.bytes)
                ON CONFLICT (app_id) DO UPDATE SET customer_bytes = customer_bytes + excluded.customer_bytes;
        END;
        CREATE TRIGGER customer_goes AFTER DELETE ON customer BEGIN
            UPDATE app_usage SET customer_bytes = customer_bytes - old.bytes WHERE app_id = old.app_id;
        END;
        CREATE TRIGGER customer_identifier_comes AFTER INSERT ON customer_identifier BEGIN
            UPDATE customer SET bytes = bytes + length(CAST(new.name AS BLOB)) + length(CAST(new.value AS BLOB))
                WHERE id = new.customer_id;
        END;
        CREATE TRIGGER customer_identifier_changes AFTER UPDATE ON customer_identifier BEGIN
            UPDATE customer SET bytes = bytes - (length(CAST(old.name AS BLOB)) + length(CAST(old.value AS BLOB)))
                WHERE id = old.customer_id;
            UPDATE customer SET bytes = bytes + length(CAST(new.name AS BLOB)) + length(CAST(new.value AS BLOB))
                WHERE id = new.customer_id;
        END;
        CREATE TRIGGER customer_identifier_goes AFTER DELETE ON customer_identifier BEGIN
            UPDATE customer SET bytes = bytes - (length(CAST(old.name AS BLOB)) + length(CAST(old.value AS BLOB)))
                WHERE id = old.customer_id;
        END;
        CREATE TRIGGER customer_property_comes AFTER INSERT ON customer_property BEGIN
            UPDATE customer SET bytes = bytes + length(CAST(new.name AS BLOB)) + length(CAST(new.value AS BLOB))
                WHERE id = new.customer_id;
        END;
        CREATE TRIGGER customer_property_changes AFTER UPDATE ON customer_property BEGIN
            UPDATE customer SET bytes = bytes - (length(CAST(old.name AS BLOB)) + length(CAST(old.value AS BLOB)))
                WHERE id = old.customer_id;
            UPDATE customer SET bytes = bytes + length(CAST(new.name AS BLOB)) + length(CAST(new.value AS BLOB))
                WHERE id = new.customer_id;
        END;
        CREATE TRIGGER customer_property_goes AFTER DELETE ON customer_property BEGIN
            UPDATE customer SET bytes = bytes - (length(CAST(old.name AS BLOB)) + length(CAST(old.value AS BLOB)))
                WHERE id = old.customer_id;
        END;
        CREATE TRIGGER inbox_read_comes AFTER INSERT ON inbox_read BEGIN
            UPDATE customer SET bytes = bytes + length(CAST(new.message_id AS BLOB))
                WHERE id = new.customer_id;
        END;
        CREATE TRIGGER inbox_read_changes AFTER UPDATE ON inbox_read BEGIN
            UPDATE customer SET bytes = bytes - (length(CAST(old.message_id AS BLOB)))
                WHERE id = old.customer_id;
            UPDATE customer SET bytes = bytes + length(CAST(new.message_id AS BLOB))
                WHERE id = new.customer_id;
        END;
        CREATE TRIGGER inbox_read_goes AFTER DELETE ON inbox_read BEGIN
            UPDATE customer SET bytes = bytes - (length(CAST(old.message_id AS BLOB)))
                WHERE id = old.customer_id;
        END;
        """

    /// Counts the properties of each customer. Deletes the oldest properties of a customer with more than 1,000.
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
