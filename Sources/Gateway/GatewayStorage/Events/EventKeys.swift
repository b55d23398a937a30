internal import CountersignCore
internal import CountersignSQLite

/// The ids of keys that verified tokens of events. An event's row has the number of its key instead of the id, because
/// an id has 43 bytes and few keys verify many events. The ids are deleted with their app.
struct EventKeys {
    static let schema = """
        CREATE TABLE event_key (
            number INTEGER PRIMARY KEY,
            app_id TEXT NOT NULL,
            key_id TEXT NOT NULL,
            UNIQUE (app_id, key_id)
        ) STRICT;
        """
    /// An SQL expression for the key id of a row.
    static let id = "coalesce(key_id, (SELECT k.key_id FROM event_key AS k WHERE k.number = key_number))"
    private static let most = 1_000

    private var known: BytewiseDictionary<(name: String, number: Int64)> = [:]
    /// The key of the previous request, which is usually also the next request's.
    private var last: (appID: String, id: String, number: Int64)?

    /// The number of a key, which is assigned if necessary.
    mutating func number(
        of id: String, in appID: String, _ connection: SQLiteConnection
    ) throws -> Int64 {
        if let last, last.id.hasSameBytes(as: id), last.appID.hasSameBytes(as: appID) { return last.number }
        let number = try found(id, in: appID, connection)
        last = (appID, id, number)
        return number
    }

    private mutating func found(
        _ id: String, in appID: String, _ connection: SQLiteConnection
    ) throws -> Int64 {
        let name = "\(appID)\0\(id)"
        if let key = known[name], key.name.hasSameBytes(as: name) { return key.number }
        try connection.run(
            "INSERT INTO event_key (app_id, key_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING", .text(appID),
            .text(id))
        let number = try connection.first(
            "SELECT number FROM event_key WHERE app_id = ?1 AND key_id = ?2", .text(appID), .text(id)
        ) { $0.int64(0) }
        guard let number else { throw SQLiteError.damaged("a key has no number") }
        if known.count >= Self.most { known = [:] }
        known[name] = (name, number)
        return number
    }
}
