internal import CountersignCore
internal import CountersignSQLite

/// Increments for `app_usage` that are not yet stored. ``KeyUseTally`` has the increments for `key_use`.
///
/// Increments are written once a second, because writing them with every commit would modify a page for each app, key
/// and new user. The table `counted` has the last counted event. Later events are counted from the event table when
/// the log is opened, so that a crash loses nothing, and before another connection deletes events.
struct EventCounts {
    struct User: Comparable {
        let appID: String
        let userID: String

        static func == (one: Self, other: Self) -> Bool {
            one.appID == other.appID && one.userID == other.userID
        }

        /// The order of `app_user`.
        static func < (one: Self, other: Self) -> Bool {
            one.appID == other.appID ? one.userID < other.userID : one.appID < other.appID
        }
    }

    static let schema = """
        CREATE TABLE counted (
            only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
            seq INTEGER NOT NULL
        ) STRICT;
        INSERT INTO counted VALUES (1, 0);
        """

    private struct Usage {
        var events = 0
        var bytes = 0
    }

    private var usage: [BytewiseText: Usage] = [:]
    /// The sequence numbers of the event before the first one in `usage`, and of the last one in `usage`.
    private var counted: Int64
    private var last: Int64

    /// With `uses`, completes the counters and key uses of an earlier run from the stored events. The key uses of
    /// requests with only duplicates cannot be restored. Pass false if this process still has the tally of key uses.
    /// The next ``write(_:listing:to:)`` then completes the counters.
    init(_ connection: SQLiteConnection, uses: Bool) throws {
        let countedThrough = try Self.countedThrough(connection)
        last = max(countedThrough, try connection.first("SELECT max(seq) FROM event") { $0.int64(0) } ?? 0)
        // Less than `countedThrough`, so that `write` counts from the event table.
        counted = uses || last == countedThrough ? last : -1
        guard uses, last > countedThrough else { return }
        try connection.transaction {
            try Self.addUses(after: countedThrough, connection)
            try Self.complete(connection)
        }
    }

    var isEmpty: Bool { last == counted }

    /// Bytes of an app's events that `app_usage` does not count yet.
    func bytes(of appID: String) -> Int64 { Int64(usage[BytewiseText(appID)]?.bytes ?? 0) }

    mutating func add(events: Int, bytes: Int, to appID: String, through sequence: Int64) {
        Self.note(events, bytes, in: &usage[BytewiseText(appID), default: Usage()])
        last = sequence
    }

    private static func note(_ events: Int, _ bytes: Int, in usage: inout Usage) {
        usage.events += events
        usage.bytes += bytes
    }

    /// Writes the increments and new users within the transaction of a commit, and resets the increments. The caller
    /// must restore them if the commit fails.
    mutating func write(
        _ uses: KeyUseTally, listing users: [User], to connection: SQLiteConnection
    ) throws {
        if try Self.countedThrough(connection) == counted {
            // In the order of the table, so that each page is modified once.
            for user in users.sorted() { try Self.list(user, connection) }
            for (appID, added) in usage {
                try connection.run(
                    """
                    INSERT INTO app_usage (app_id, events, bytes) VALUES (?1, ?2, ?3)
                    ON CONFLICT (app_id) DO UPDATE SET events = events + ?2, bytes = bytes + ?3
                    """, .text(appID.text), .integer(Int64(added.events)), .integer(Int64(added.bytes)))
            }
            if last > counted { try Self.note(last, connection) }
        } else {
            // Another writer has counted some of the events and may have deleted their users, or `init` left events
            // of an earlier connection uncounted.
            try Self.complete(connection)
        }
        try uses.write(to: connection)
        usage = [:]
        counted = max(last, try Self.countedThrough(connection))
        last = counted
    }

    static func list(_ user: User, _ connection: SQLiteConnection) throws {
        try connection.run(
            "INSERT OR IGNORE INTO app_user VALUES (?1, ?2)", .text(user.appID), .text(user.userID))
    }

    /// The users of an app after `last` who may not be in `app_user` yet, in ascending order.
    static func unlistedUsers(
        of appID: String, after last: String, _ connection: SQLiteConnection
    ) throws -> [String] {
        try connection.all(
            """
            SELECT DISTINCT user_id FROM event
            WHERE seq > (SELECT seq FROM counted) AND app_id = ?1 AND user_id > ?2 ORDER BY user_id
            """, .text(appID), .text(last)
        ) { $0.text(0) }
    }

    /// Completes `app_usage` and `app_user` from the events. Must run in a transaction before events are deleted, so
    /// that an uncounted event is not subtracted.
    static func complete(_ connection: SQLiteConnection) throws {
        try connection.run(
            """
            INSERT OR IGNORE INTO app_user SELECT DISTINCT app_id, user_id FROM event
            WHERE seq > (SELECT seq FROM counted) AND user_id IS NOT NULL
            """)
        try connection.run(
            """
            INSERT INTO app_usage (app_id, events, bytes)
                SELECT app_id, count(*), sum(length(CAST(body AS BLOB))) FROM event
                WHERE seq > (SELECT seq FROM counted) GROUP BY app_id
                ON CONFLICT (app_id) DO UPDATE
                SET events = events + excluded.events, bytes = bytes + excluded.bytes
            """)
        try connection.run("UPDATE counted SET seq = max(seq, (SELECT coalesce(max(seq), 0) FROM event))")
    }

    /// The number of stored events, including events that are not yet counted.
    static func events(_ connection: SQLiteConnection) throws -> Int64 {
        // One statement, so that both parts use the same snapshot.
        try connection.first(
            """
            SELECT coalesce((SELECT sum(events) FROM app_usage), 0)
                + (SELECT count(*) FROM event WHERE seq > (SELECT seq FROM counted))
            """
        ) { $0.int64(0) } ?? 0
    }

    private static func countedThrough(_ connection: SQLiteConnection) throws -> Int64 {
        try connection.first("SELECT seq FROM counted") { $0.int64(0) } ?? 0
    }

    private static func note(_ sequence: Int64, _ connection: SQLiteConnection) throws {
        try connection.run("UPDATE counted SET seq = ?1", .integer(sequence))
    }

    private static func addUses(after sequence: Int64, _ connection: SQLiteConnection) throws {
        try connection.run(
            """
            INSERT INTO key_use
                SELECT app_id, key_id, count(DISTINCT request_id), max(received_ms) FROM \(EventLogSchema.view)
                WHERE seq > ?1 AND key_id IS NOT NULL GROUP BY app_id, key_id
                ON CONFLICT (app_id, key_id) DO UPDATE
                SET verified = verified + excluded.verified, last_ms = max(last_ms, excluded.last_ms)
            """, .integer(sequence))
    }
}
