internal import CountersignJOSE
internal import CountersignSQLite

/// The keys that have verified tokens of events. A row names its key by a number: the id takes 43 bytes, and few keys verify
/// many events.
struct EventKeys {
    static let schema = """
        CREATE TABLE event_key (number INTEGER PRIMARY KEY, key_id TEXT NOT NULL UNIQUE) STRICT;
        """
    /// Numbers that are kept, at most.
    private static let most = 1_000

    private var known: [String: (id: String, number: Int64)] = [:]

    /// The number of a key, which gets one when it has none.
    mutating func number(of id: String, _ connection: SQLiteConnection) throws -> Int64 {
        // Ids that Unicode considers the same are not.
        if let key = known[id], key.id.hasSameBytes(as: id) { return key.number }
        try connection.run("INSERT INTO event_key (key_id) VALUES (?1) ON CONFLICT DO NOTHING", .text(id))
        let number = try connection.first("SELECT number FROM event_key WHERE key_id = ?1", .text(id)) {
            $0.int64(0)
        }
        guard let number else { throw SQLiteError.damaged("a key has no number") }
        if known.count >= Self.most { known = [:] }
        known[id] = (id, number)
        return number
    }
}
