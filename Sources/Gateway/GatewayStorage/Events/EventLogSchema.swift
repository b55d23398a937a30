internal import CountersignSQLite
internal import Foundation

/// The tables of events in `events.sqlite`.
enum EventLogSchema {
    /// Applies to new files only. Pages of 16 KiB hold rows of about 1 KB with less waste, which halves the
    /// pages written.
    static let pageSize = "PRAGMA page_size = 16384;"

    /// The version that the first migration creates.
    static let oldestVersion = 13

    static let migrations = [
        script, CustomerSchema.propertyCount, ProgressColumns.script, claims, PartitionGaps.script,
    ]

    private static let script =
        createTable("") + """
            CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL) STRICT;
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
            """ + RetentionSweeper.script + CustomerSchema.script + KeyUse.schema + EventCounts.schema
        + EventConsumerSchema.script + EventTimes.schema + EventKeys.schema + createView("")

    /// Adds columns for the stored token claims of an event, and for the claim by which a consumer filters events.
    private static let claims =
        """
        ALTER TABLE event ADD COLUMN claims TEXT;
        ALTER TABLE event_consumer ADD COLUMN claim TEXT;
        DROP VIEW \(view);
        """ + createView("claims, ")

    /// The event table. Request ids that are UUIDs are stored as 16 bytes, which is less than half the size. `more` has
    /// columns before `body`, because reading a column after a long body costs more.
    private static func createTable(_ more: String) -> String {
        """
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
            \(more)body TEXT NOT NULL
        ) STRICT;
        """
    }

    /// A view of events with key and request ids in full.
    static let view = "stored_event"

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

    /// Prevents reuse of sequence numbers after the newest events were deleted.
    private static let trigger = """
        CREATE TRIGGER event_goes BEFORE DELETE ON event
        WHEN old.seq >= (SELECT next_seq FROM event_log) BEGIN
            UPDATE event_log SET next_seq = 1 + (SELECT max(seq) FROM event);
        END;
        """

    static func migrate(_ connection: SQLiteConnection, at now: Date = Date()) throws {
        try Schema.migrate(connection, migrations, from: oldestVersion, at: now)
        guard try EventLogState.read(connection) == nil else { return }
        try connection.transaction {
            // The log is new. Its table is created again, with `claims` before `body`.
            try connection.execute("DROP TABLE event;" + createTable("claims TEXT, ") + trigger)
            try EventLogState.begin(connection)
        }
    }
}
