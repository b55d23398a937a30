/// The tables of customers, and the database functions that change them. Each step of a change depends on the step
/// before it, so separate statements would wait for the network at each step.
enum CustomerSchema {
    static let script = tables + lock + merge + deletion + member

    private static let tables = """
        CREATE TABLE customer (
            id TEXT PRIMARY KEY,
            app_id TEXT NOT NULL,
            created_ms BIGINT NOT NULL,
            seen_ms BIGINT NOT NULL,
            bytes BIGINT NOT NULL DEFAULT 0
        );
        CREATE INDEX customer_seen ON customer (app_id, seen_ms);
        CREATE TABLE customer_identifier (
            app_id TEXT NOT NULL,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            customer_id TEXT,
            seq BIGINT,
            bytes BIGINT NOT NULL GENERATED ALWAYS AS (octet_length(name) + octet_length(value)) STORED,
            PRIMARY KEY (app_id, name, value)
        );
        CREATE INDEX customer_identifier_of ON customer_identifier (customer_id, name);
        CREATE TABLE customer_property (
            customer_id TEXT NOT NULL,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            updated_ms BIGINT NOT NULL,
            bytes BIGINT NOT NULL GENERATED ALWAYS AS (octet_length(name) + octet_length(value)) STORED,
            PRIMARY KEY (customer_id, name)
        );
        CREATE TABLE customer_merge (
            source_id TEXT PRIMARY KEY,
            destination_id TEXT NOT NULL,
            merged_ms BIGINT NOT NULL
        );
        CREATE INDEX customer_merge_into ON customer_merge (destination_id);
        CREATE TABLE inbox_read (
            seq BIGINT NOT NULL,
            customer_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            read_ms BIGINT NOT NULL,
            bytes BIGINT NOT NULL GENERATED ALWAYS AS (octet_length(message_id)) STORED,
            PRIMARY KEY (customer_id, message_id)
        );
        -- `seq` of identifiers and read messages. Ascends within a customer, because writers lock the customer's row.
        CREATE SEQUENCE customer_seq;

        CREATE FUNCTION count_customer_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP <> 'INSERT' THEN
                UPDATE customer SET bytes = bytes - OLD.bytes WHERE id = OLD.customer_id;
            END IF;
            IF TG_OP <> 'DELETE' THEN
                UPDATE customer SET bytes = bytes + NEW.bytes WHERE id = NEW.customer_id;
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER bytes AFTER INSERT OR UPDATE OR DELETE ON customer_identifier
            FOR EACH ROW EXECUTE FUNCTION count_customer_bytes();
        CREATE TRIGGER bytes AFTER INSERT OR UPDATE OR DELETE ON customer_property
            FOR EACH ROW EXECUTE FUNCTION count_customer_bytes();
        CREATE TRIGGER bytes AFTER INSERT OR UPDATE OR DELETE ON inbox_read
            FOR EACH ROW EXECUTE FUNCTION count_customer_bytes();

        """

    private static let lock = """
        -- Reserves ids for this transaction: inserts rows for new ids, and locks the customers of all other ids.
        -- Inserts and locks are in sorted order, and all inserts precede all locks, so no deadlock is possible.
        -- A transaction moves an id to another customer only while it has locked the id's previous customer.
        CREATE FUNCTION lock_customers(apps text[], names text[], ids text[]) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            wanted bigint;
            owners text[];
            found bigint;
            owners_now text[];
        BEGIN
            SELECT count(DISTINCT (app, name, value)) INTO wanted FROM unnest(apps, names, ids) AS w (app, name, value);
            LOOP
                BEGIN
                    INSERT INTO customer_identifier (app_id, name, value)
                        SELECT DISTINCT app COLLATE "C", name COLLATE "C", value COLLATE "C"
                        FROM unnest(apps, names, ids) AS w (app, name, value)
                        ORDER BY 1, 2, 3
                        ON CONFLICT DO NOTHING;
                    SELECT array_agg(DISTINCT own.customer_id ORDER BY own.customer_id) INTO owners
                        FROM unnest(apps, names, ids) AS w (app, name, value)
                        JOIN customer_identifier AS own ON own.app_id = w.app AND own.name = w.name AND own.value = w.value
                        WHERE own.customer_id IS NOT NULL;
                    PERFORM FROM customer WHERE id = ANY (owners) ORDER BY id FOR UPDATE;
                    SELECT count(DISTINCT (own.app_id, own.name, own.value)),
                            array_agg(DISTINCT own.customer_id ORDER BY own.customer_id)
                            FILTER (WHERE own.customer_id IS NOT NULL)
                        INTO found, owners_now
                        FROM unnest(apps, names, ids) AS w (app, name, value)
                        JOIN customer_identifier AS own ON own.app_id = w.app AND own.name = w.name AND own.value = w.value;
                    IF found = wanted AND owners_now IS NOT DISTINCT FROM owners THEN
                        RETURN;
                    END IF;
                    -- Another transaction has merged or deleted customers. Rolls back the block and its locks.
                    RAISE EXCEPTION USING ERRCODE = 'CS001';
                EXCEPTION WHEN SQLSTATE 'CS001' THEN
                    NULL;
                END;
            END LOOP;
        END $$;

        """

    private static let merge = """
        -- Deletes a customer's oldest ids beyond 64 of one name and 256 of all names except `registered`.
        CREATE FUNCTION trim_identifiers(customer text, trimmed text) RETURNS void LANGUAGE sql AS $$
            DELETE FROM customer_identifier WHERE customer_id = customer AND seq IN (
                SELECT seq FROM customer_identifier WHERE customer_id = customer AND name = trimmed
                ORDER BY seq DESC OFFSET 64);
            DELETE FROM customer_identifier WHERE customer_id = customer AND seq IN (
                SELECT seq FROM customer_identifier WHERE customer_id = customer AND name <> 'registered'
                ORDER BY seq DESC OFFSET 256);
        $$;

        CREATE FUNCTION merge_customer(source text, destination text, at_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            names text[];
            trimmed text;
        BEGIN
            SELECT array_agg(DISTINCT name) INTO names FROM customer_identifier WHERE customer_id = source;
            UPDATE customer_identifier SET customer_id = destination WHERE customer_id = source;
            FOREACH trimmed IN ARRAY coalesce(names, '{}') LOOP
                PERFORM trim_identifiers(destination, trimmed);
            END LOOP;
            INSERT INTO customer_property AS property (customer_id, name, value, updated_ms)
                SELECT destination, name, value, updated_ms FROM customer_property WHERE customer_id = source
                ON CONFLICT (customer_id, name) DO UPDATE SET value = excluded.value, updated_ms = excluded.updated_ms
                WHERE excluded.updated_ms > property.updated_ms;
            DELETE FROM customer_property WHERE customer_id = source;
            -- Inserts rows with new numbers, so that other devices of the destination fetch them.
            INSERT INTO inbox_read (seq, customer_id, message_id, read_ms)
                SELECT nextval('customer_seq'), destination, message_id, read_ms
                FROM (SELECT * FROM inbox_read WHERE customer_id = source ORDER BY seq) AS was
                ON CONFLICT DO NOTHING;
            DELETE FROM inbox_read WHERE customer_id = source;
            UPDATE customer_merge SET destination_id = destination WHERE destination_id = source;
            INSERT INTO customer_merge VALUES (source, destination, at_ms);
            DELETE FROM customer WHERE id = source;
        END $$;

        """

    /// A migration that counts the properties of customers, and creates the function `change_customer` or replaces its
    /// earlier version. The function adds no property above 1,000, or above 1 MiB of the customer's data.
    static let propertyLimit = """
        ALTER TABLE customer ADD COLUMN properties BIGINT NOT NULL DEFAULT 0;
        CREATE FUNCTION count_customer_property() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'INSERT' THEN
                UPDATE customer SET bytes = bytes + NEW.bytes, properties = properties + 1 WHERE id = NEW.customer_id;
            ELSIF TG_OP = 'DELETE' THEN
                UPDATE customer SET bytes = bytes - OLD.bytes, properties = properties - 1 WHERE id = OLD.customer_id;
            ELSE
                UPDATE customer SET bytes = bytes - OLD.bytes + NEW.bytes WHERE id = NEW.customer_id;
            END IF;
            RETURN NULL;
        END $$;
        DROP TRIGGER bytes ON customer_property;
        CREATE TRIGGER bytes AFTER INSERT OR UPDATE OR DELETE ON customer_property
            FOR EACH ROW EXECUTE FUNCTION count_customer_property();
        UPDATE customer SET properties = counted.properties FROM (
            SELECT customer_id, count(*) AS properties FROM customer_property GROUP BY customer_id) AS counted
            WHERE id = counted.customer_id;

        -- Deletes the oldest properties of `trimmed`, until both customers together are within the limits of one.
        CREATE FUNCTION trim_properties(trimmed text, besides text) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            all_bytes bigint;
            all_properties bigint;
            besides_bytes bigint;
            besides_properties bigint;
        BEGIN
            SELECT sum(bytes), sum(properties), coalesce(sum(bytes) FILTER (WHERE id = besides), 0),
                    coalesce(sum(properties) FILTER (WHERE id = besides), 0)
                INTO all_bytes, all_properties, besides_bytes, besides_properties
                FROM customer WHERE id IN (trimmed, besides);
            IF all_bytes > 1048576 OR all_properties > 1000 THEN
                DELETE FROM customer_property WHERE customer_id = trimmed AND name IN (
                    SELECT name FROM (
                        SELECT name, row_number() OVER newest AS place, sum(bytes) OVER newest AS size
                        FROM customer_property AS own WHERE customer_id = trimmed AND NOT EXISTS (
                            SELECT FROM customer_property AS kept WHERE kept.customer_id = besides AND kept.name = own.name)
                        WINDOW newest AS (ORDER BY updated_ms DESC, name)) AS placed
                    WHERE place > 1000 - besides_properties OR size > 1048576 - besides_bytes);
            END IF;
        END $$;
        DELETE FROM customer_property WHERE (customer_id, name) IN (
            SELECT customer_id, name FROM (
                SELECT customer_id, name, row_number() OVER (
                    PARTITION BY customer_id ORDER BY updated_ms DESC, name) AS place
                FROM customer_property WHERE customer_id IN (SELECT id FROM customer WHERE properties > 1000)) AS placed
            WHERE place > 1000);

        -- Changes a customer, as `CustomerWriter` of SQLite's store does. Must be called after `lock_customers` for
        -- all ids of the transaction. `made` is the id for a new customer.
        CREATE OR REPLACE FUNCTION change_customer(
            app text, made text, by_cookie_only boolean, at_ms bigint, received bigint,
            id_names text[], id_values text[], names text[], jsons text[], reads text[]
        ) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            target text;
            other text;
            identified text;
            selected text[];
            free integer[];
        BEGIN
            SELECT array_agg(i ORDER BY i) FILTER (WHERE owner IS NULL),
                    array_agg(owner ORDER BY i) FILTER (WHERE owner IS NOT NULL AND selects)
                INTO free, selected
                FROM (SELECT i, customer.id AS owner, id_name = 'registered'
                        OR (id_name = 'cookie' OR NOT by_cookie_only) AND NOT EXISTS (
                            SELECT FROM customer_identifier AS hard
                            WHERE hard.customer_id = customer.id AND hard.name = 'registered') AS selects
                    FROM unnest(id_names, id_values) WITH ORDINALITY AS w (id_name, id_value, i)
                    LEFT JOIN customer_identifier AS own
                        ON own.app_id = app AND own.name = id_name AND own.value = id_value
                    LEFT JOIN customer ON customer.id = own.customer_id) AS found;
            SELECT id INTO target FROM customer WHERE id = ANY (selected) ORDER BY created_ms, id LIMIT 1;
            IF target IS NOT NULL THEN
                -- Properties from an unauthenticated client must not displace properties of the identified customer.
                SELECT hard.customer_id INTO identified FROM customer_identifier AS hard
                    WHERE hard.customer_id = ANY (selected) AND hard.name = 'registered' LIMIT 1;
                FOR other IN
                    SELECT id FROM unnest(selected) WITH ORDINALITY AS one (id, i) WHERE id <> target
                    GROUP BY id ORDER BY min(i)
                LOOP
                    IF other = identified THEN
                        PERFORM trim_properties(target, other);
                    ELSE
                        PERFORM trim_properties(other, target);
                    END IF;
                    PERFORM merge_customer(other, target, received);
                    PERFORM trim_properties(target, '');
                END LOOP;
            ELSIF free IS NULL THEN
                -- Ignores a change whose ids select no customer and all belong to customers already.
                RETURN;
            ELSE
                target := made;
                INSERT INTO customer (id, app_id, created_ms, seen_ms) VALUES (made, app, received, received);
            END IF;
            FOR i IN 1 .. coalesce(cardinality(free), 0) LOOP
                INSERT INTO customer_identifier (app_id, name, value, customer_id, seq)
                    VALUES (app, id_names[free[i]], id_values[free[i]], target, nextval('customer_seq'))
                    ON CONFLICT (app_id, name, value) DO UPDATE SET customer_id = excluded.customer_id, seq = excluded.seq;
                IF id_names[free[i]] <> 'registered' THEN
                    PERFORM trim_identifiers(target, id_names[free[i]]);
                END IF;
            END LOOP;
            -- Stored with a resolution of one hour, so that most requests need not write it.
            UPDATE customer SET seen_ms = received WHERE id = target AND seen_ms < received - 3600000;
            FOR i IN 1 .. coalesce(cardinality(names), 0) LOOP
                INSERT INTO customer_property AS property (customer_id, name, value, updated_ms)
                    SELECT target, names[i], jsons[i], at_ms FROM customer WHERE id = target
                    AND (properties < 1000 OR EXISTS (
                        SELECT FROM customer_property AS had WHERE had.customer_id = target AND had.name = names[i]))
                    AND (bytes + octet_length(names[i]) + octet_length(jsons[i]) <= 1048576 OR EXISTS (
                        SELECT FROM customer_property AS had WHERE had.customer_id = target AND had.name = names[i]
                        AND octet_length(had.value) >= octet_length(jsons[i])))
                    ON CONFLICT (customer_id, name) DO UPDATE SET value = excluded.value, updated_ms = excluded.updated_ms
                    WHERE excluded.updated_ms >= property.updated_ms;
            END LOOP;
            FOR i IN 1 .. coalesce(cardinality(reads), 0) LOOP
                INSERT INTO inbox_read (seq, customer_id, message_id, read_ms)
                    VALUES (nextval('customer_seq'), target, reads[i], received)
                    ON CONFLICT DO NOTHING;
            END LOOP;
        END $$;

        """

    private static let deletion = """
        -- Deletes at most `most` rows of a customer, and the customer with the last of them. The caller must have
        -- locked the customer's row.
        CREATE FUNCTION forget_customer(forgotten text, most bigint, OUT deleted bigint, OUT is_whole boolean)
        LANGUAGE plpgsql AS $$
        DECLARE
            part text;
            gone bigint;
        BEGIN
            deleted := 0;
            FOREACH part IN ARRAY ARRAY['customer_property', 'inbox_read', 'customer_identifier'] LOOP
                EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY(
                    SELECT ctid FROM %1$I WHERE customer_id = $1 LIMIT $2))', part) USING forgotten, most - deleted;
                GET DIAGNOSTICS gone = ROW_COUNT;
                deleted := deleted + gone;
            END LOOP;
            DELETE FROM customer_merge WHERE source_id = ANY (ARRAY(
                SELECT source_id FROM customer_merge WHERE destination_id = forgotten LIMIT most - deleted));
            GET DIAGNOSTICS gone = ROW_COUNT;
            deleted := deleted + gone;
            is_whole := deleted < most;
            IF is_whole THEN
                DELETE FROM customer WHERE id = forgotten;
            END IF;
        END $$;

        """

    /// A function that returns a JSON member; NULL for text that is not JSON or contains U+0000, instead of an error.
    private static let member = """
        CREATE FUNCTION json_member(body text, member text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN
            RETURN body::json ->> member;
        EXCEPTION WHEN others THEN
            RETURN NULL;
        END $$;

        """
}
