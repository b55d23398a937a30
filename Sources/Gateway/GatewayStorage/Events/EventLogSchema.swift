internal import CountersignSQLite
internal import Foundation

/// The tables of events in `events.sqlite`.
enum EventLogSchema {
    /// Applies to new files only. Pages of 16 KiB hold rows of about 1 KB with less waste, which halves the
    /// pages written.
    static let pageSize = "PRAGMA page_size = 16384;"

    static let migrations = [
        """
        CREATE TABLE event (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            app_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            type TEXT NOT NULL,
            user_id TEXT,
            anonymous_id TEXT,
            name TEXT,
            timestamp_ms INTEGER NOT NULL,
            received_ms INTEGER NOT NULL,
            body TEXT NOT NULL,
            UNIQUE (app_id, message_id)
        ) STRICT;
        CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL) STRICT;
        """,
        CustomerSchema.script,
        RetentionSweeper.script,
        KeyUse.schema,
        "CREATE INDEX event_user ON event (app_id, user_id) WHERE user_id IS NOT NULL",
        messageIDsOfSenders,
        CustomerSchema.usage,
        // Finds the anonymous events of a customer's devices, to delete them with the customer.
        "CREATE INDEX event_device ON event (app_id, anonymous_id) WHERE user_id IS NULL",
        indexBesidesTheLog,
        EventCounts.schema,
        EventConsumerSchema.script,
        EventTimes.schema,
        shortColumns,
        CustomerSchema.propertyCount,
        ProgressColumns.script(integer: "INTEGER"),
        claims,
        PartitionGaps.script(integer: "INTEGER"),
    ]

    /// Makes message ids unique for each sender instead of each app, so that clients cannot use up the ids of others.
    /// Removing the old unique constraint requires a new table.
    ///
    /// Ids from the content of a Bloomreach event also get a sender, because such an event stays the same after its
    /// customer has signed in (`docs/adr/0008-message-ids-of-bloomreach-clients.md`).
    private static let messageIDsOfSenders = """
        CREATE TABLE event_of_sender (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            app_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            type TEXT NOT NULL,
            user_id TEXT,
            anonymous_id TEXT,
            name TEXT,
            timestamp_ms INTEGER NOT NULL,
            received_ms INTEGER NOT NULL,
            body TEXT NOT NULL,
            sender TEXT
        ) STRICT;
        INSERT INTO event_of_sender
            SELECT seq, app_id, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms, body,
                CASE WHEN message_id GLOB 'sha256-*' AND coalesce(user_id, anonymous_id) IS NOT NULL
                    AND json_type(iif(json_valid(body), body, 'null'), '$.customer_ids') = 'object'
                THEN 'content' END
            FROM event ORDER BY seq;
        DELETE FROM sqlite_sequence WHERE name = 'event_of_sender';
        INSERT INTO sqlite_sequence SELECT 'event_of_sender', seq FROM sqlite_sequence WHERE name = 'event';
        DROP TABLE event;
        ALTER TABLE event_of_sender RENAME TO event;
        CREATE UNIQUE INDEX event_once ON event (
            app_id, message_id, coalesce(sender, 'user ' || user_id, 'device ' || anonymous_id, ''));
        CREATE INDEX event_user ON event (app_id, user_id) WHERE user_id IS NOT NULL;
        """

    /// Removes the indexes of ids and users, because each event modified pages all over the file. ``EventIndex``
    /// replaces them (`docs/adr/0020-event-index.md`). Rows are not rewritten.
    private static let indexBesidesTheLog = """
        CREATE TABLE event_log (
            only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
            id BLOB NOT NULL,
            key_secret BLOB NOT NULL,
            next_seq INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE event_claim (
            app_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            seq INTEGER NOT NULL,
            PRIMARY KEY (app_id, user_id, seq)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE app_user (
            app_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            PRIMARY KEY (app_id, user_id)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO app_user SELECT DISTINCT app_id, user_id FROM event WHERE user_id IS NOT NULL;
        DROP INDEX event_once;
        DROP INDEX event_user;
        DROP INDEX event_device;
        ALTER TABLE event ADD COLUMN verdict TEXT;
        ALTER TABLE event ADD COLUMN code INTEGER;
        ALTER TABLE event ADD COLUMN key_id TEXT;
        ALTER TABLE event ADD COLUMN enforcement TEXT;
        ALTER TABLE event ADD COLUMN dialect TEXT;
        ALTER TABLE event ADD COLUMN request_id TEXT;
        ALTER TABLE event ADD COLUMN token_id TEXT;
        """

    /// A view of events with key and request ids in full, for rows of any version.
    static let view = "stored_event"

    /// Stores request ids that are UUIDs as 16 bytes, which is less than half the size. Existing rows and
    /// other ids stay text.
    private static let shortColumns =
        EventKeys.schema + """
            ALTER TABLE event ADD COLUMN key_number INTEGER;
            ALTER TABLE event ADD COLUMN request_uuid BLOB;
            """ + createView("")

    /// Adds the stored token claims of events, and a filter of consumers by a claim.
    private static let claims =
        """
        ALTER TABLE event ADD COLUMN claims TEXT;
        ALTER TABLE event_consumer ADD COLUMN claim TEXT;
        DROP VIEW \(view);
        """ + createView("claims, ")

    private static func createView(_ more: String) -> String {
        """
        CREATE VIEW \(view) AS
            SELECT seq, app_id, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms,
                sender, verdict, code,
                \(EventKeys.id) AS key_id,
                enforcement, dialect,
                iif(request_uuid IS NULL, request_id, lower(
                    substr(hex(request_uuid), 1, 8) || '-' || substr(hex(request_uuid), 9, 4) || '-'
                    || substr(hex(request_uuid), 13, 4) || '-' || substr(hex(request_uuid), 17, 4) || '-'
                    || substr(hex(request_uuid), 21))) AS request_id,
                token_id, \(more)body
            FROM event;
        """
    }

    /// The event table of a new log. The writer assigns the sequence numbers.
    private static let table = """
        CREATE TABLE event (
            seq INTEGER PRIMARY KEY,
            app_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            type TEXT NOT NULL,
            user_id TEXT,
            anonymous_id TEXT,
            name TEXT,
            timestamp_ms INTEGER NOT NULL,
            received_ms INTEGER NOT NULL,
            sender TEXT,
            verdict TEXT,
            code INTEGER,
            key_id TEXT,
            enforcement TEXT,
            dialect TEXT,
            request_id TEXT,
            token_id TEXT,
            key_number INTEGER,
            request_uuid BLOB,
            claims TEXT,
            body TEXT NOT NULL
        ) STRICT;
        """

    /// Prevents reuse of sequence numbers after the newest events were deleted.
    private static let trigger = """
        CREATE TRIGGER event_goes BEFORE DELETE ON event
        WHEN old.seq >= (SELECT next_seq FROM event_log) BEGIN
            UPDATE event_log SET next_seq = 1 + (SELECT max(seq) FROM event);
        END
        """

    static func migrate(_ connection: SQLiteConnection, at now: Date = Date()) throws {
        try Schema.migrate(connection, migrations, at: now)
        guard try EventLogState.read(connection) == nil else { return }
        try connection.transaction {
            try EventLogState.begin(connection)
            let isNew =
                try connection.first("SELECT 1 FROM sqlite_sequence WHERE name = 'event' AND seq > 0") { _ in
                    true
                }
                == nil
            if isNew { try connection.execute("DROP TABLE event;" + table) }
            try connection.execute(trigger)
        }
    }
}
