internal import CountersignCore
internal import CountersignSQLite

/// Counts of key uses that are not stored yet, by app and key.
package struct KeyUseTally: Sendable {
    private struct Key: Hashable {
        let appID: String
        let keyID: String
    }

    private var uses: [Key: (count: Int64, lastMilliseconds: Int64)] = [:]

    package init() {}

    package var isEmpty: Bool { uses.isEmpty }

    package mutating func add(appID: String, keyID: String, milliseconds: Int64) {
        Self.note(milliseconds, in: &uses[Key(appID: appID, keyID: keyID), default: (0, 0)])
    }

    private static func note(_ milliseconds: Int64, in use: inout (count: Int64, lastMilliseconds: Int64)) {
        use.count += 1
        use.lastMilliseconds = max(use.lastMilliseconds, milliseconds)
    }

    /// Adds the uses that a failed commit could not store.
    mutating func add(_ other: KeyUseTally) {
        uses.merge(other.uses) { ($0.count + $1.count, max($0.lastMilliseconds, $1.lastMilliseconds)) }
    }

    /// In the order in which all writers lock rows of `key_use`, to prevent deadlocks.
    package var sorted: [KeyUse] {
        uses.map {
            KeyUse(
                appID: $0.appID, keyID: $0.keyID, verified: $1.count, lastMilliseconds: $1.lastMilliseconds)
        }.sorted { $0.appID == $1.appID ? $0.keyID < $1.keyID : $0.appID < $1.appID }
    }

    func write(to connection: SQLiteConnection) throws(SQLiteError) {
        for (key, use) in uses {
            try connection.run(
                """
                INSERT INTO key_use VALUES (?1, ?2, ?3, ?4) ON CONFLICT (app_id, key_id)
                DO UPDATE SET verified = verified + ?3, last_ms = max(last_ms, ?4)
                """,
                .text(key.appID), .text(key.keyID), .integer(use.count), .integer(use.lastMilliseconds))
        }
    }
}
