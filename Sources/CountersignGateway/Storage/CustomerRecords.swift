internal import CountersignCore
internal import CountersignJOSE
internal import CountersignSQLite
internal import Foundation

/// What is kept of one person: the profile, and how many events.
struct CustomerRecord: Sendable {
    struct Property: Sendable {
        let name: String
        let value: JSONValue
        let updatedMilliseconds: Int64
    }

    var identifiers: [CustomerIdentifier]
    var properties: [Property] = []
    /// True when there are properties that are not read: 1,000, or 1 MiB, are.
    var hasMoreProperties = false
    /// When the profile began, in milliseconds since 1970; nil when there is none.
    var createdMilliseconds: Int64?
    /// When the person was seen last, to the hour; nil when there is no profile.
    var seenMilliseconds: Int64?
    /// How many events are kept; 100,000 stands for as many or more.
    var events = 0
}

/// Finds and deletes what is kept of one person in a data directory, whether or not a gateway runs on it.
struct CustomerRecords: Sendable {
    /// What was deleted.
    struct Deletion: Sendable, Equatable {
        var hasProfile = false
        var events = 0
        /// Samples of failed requests.
        var samples = 0

        var isEmpty: Bool { self == Deletion() }
    }

    private static let mostProperties = 1_000
    private static let propertyBytes = 1 << 20
    private static let mostCounted = 100_000
    /// Rows that one commit deletes, so that the gateway's own writer never waits long for it.
    private static let rowsPerCommit = 500

    let dataDirectory: String

    /// What is kept of the person with an id.
    ///
    /// - Parameters:
    ///   - identifier: A `registered` id, which is the user id of events, or another id of a profile.
    ///   - appID: Of which app.
    /// - Returns: What there is; nil when there is neither a profile nor an event.
    /// - Throws: `storage`.
    func find(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError) -> CustomerRecord? {
        guard let events = try open("events.sqlite", .readOnly) else { return nil }
        return try Self.translate {
            var record = CustomerRecord(identifiers: [identifier])
            let profile = try Self.profile(of: identifier, appID, events)
            if let profile {
                record.identifiers = try Self.identifiers(of: profile, events)
                let times = try events.first(
                    "SELECT created_ms, seen_ms FROM customer WHERE id = ?1", .text(profile)
                ) { ($0.int64(0), $0.int64(1)) }
                (record.createdMilliseconds, record.seenMilliseconds) = (times?.0, times?.1)
                try Self.readProperties(of: profile, events, into: &record)
            }
            for (condition, value) in Self.senders(record.identifiers) {
                record.events +=
                    try events.first(
                        "SELECT count(*) FROM (SELECT 1 FROM event WHERE \(condition) LIMIT ?3)",
                        .text(appID),
                        .text(value), .integer(Int64(Self.mostCounted))
                    ) { $0.int(0) } ?? 0
            }
            record.events = min(record.events, Self.mostCounted)
            return profile == nil && record.events == 0 ? nil : record
        }
    }

    /// Deletes the profile, the events and the samples of the person with an id: the events of the user, and those that
    /// the profile's devices sent before anybody had signed in. The space is overwritten.
    ///
    /// - Parameters:
    ///   - identifier: A `registered` id, or another id of a profile.
    ///   - appID: Of which app.
    /// - Returns: What was deleted. What is stored meanwhile may stay: try again.
    /// - Throws: `storage`; what is left can be deleted by trying again.
    func delete(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError) -> Deletion {
        var deletion = Deletion()
        guard let events = try open("events.sqlite", .readWriteCreate) else { return deletion }
        var identifiers = [identifier]
        try Self.translate {
            try events.execute("PRAGMA secure_delete = ON; PRAGMA synchronous = FULL")
            let profile = try Self.profile(of: identifier, appID, events)
            if let profile { identifiers = try Self.identifiers(of: profile, events) }
            for (condition, value) in Self.senders(identifiers) {
                while true {
                    let count = try Self.deleteEvents(condition, value, appID, events)
                    deletion.events += count
                    if count < Self.rowsPerCommit { break }
                }
            }
            // The profile goes last: it says which devices are this person's, should this be interrupted.
            if let profile {
                while try !events.transaction({
                    try CustomerWriter.forget(profile, rows: Self.rowsPerCommit, events)
                }) {}
                deletion.hasProfile = true
            }
        }
        guard let analytics = try open(AnalyticsStore.fileName, .readWriteCreate) else { return deletion }
        try Self.translate {
            try analytics.execute("PRAGMA secure_delete = ON")
            for identifier in identifiers where identifier.isHard {
                try analytics.run(
                    "DELETE FROM sample WHERE app_id = ?1 AND user_id = ?2", .text(appID),
                    .text(identifier.value))
                deletion.samples += analytics.changes
            }
        }
        return deletion
    }

    // MARK: Reading

    /// The conditions, with the app as ?1 and a value as ?2, that together find all events of a person, each once.
    private static func senders(_ identifiers: [CustomerIdentifier]) -> [(condition: String, value: String)] {
        identifiers.map { identifier in
            identifier.isHard
                ? ("app_id = ?1 AND user_id = ?2", identifier.value)
                : ("app_id = ?1 AND anonymous_id = ?2 AND user_id IS NULL", identifier.value)
        }
    }

    private static func profile(
        of identifier: CustomerIdentifier, _ appID: String, _ events: SQLiteConnection
    ) throws -> String? {
        try events.first(
            "SELECT customer_id FROM customer_identifier WHERE app_id = ?1 AND name = ?2 AND value = ?3",
            .text(appID), .text(identifier.name), .text(identifier.value)
        ) { $0.text(0) }
    }

    private static func identifiers(
        of profile: String, _ events: SQLiteConnection
    ) throws -> [CustomerIdentifier] {
        try events.all(
            "SELECT name, value FROM customer_identifier WHERE customer_id = ?1 ORDER BY seq", .text(profile)
        ) { CustomerIdentifier(name: $0.text(0), value: $0.text(1)) }
    }

    private static func readProperties(
        of profile: String, _ events: SQLiteConnection, into record: inout CustomerRecord
    ) throws {
        let statement = try events.prepare(
            """
            SELECT name, value, updated_ms FROM customer_property WHERE customer_id = ?1 AND value <> 'null'
            ORDER BY name
            """)
        try statement.bind([.text(profile)])
        var bytes = 0
        while try statement.step() {
            let text = Array(statement.text(1).utf8)
            bytes += text.count
            guard record.properties.count < mostProperties, bytes <= propertyBytes else {
                record.hasMoreProperties = true
                return
            }
            let value = try? StrictJSONParser(maximumBytes: max(1, text.count), maximumNameBytes: 1_024)
                .parse(bytes: text) { $0.value }
            record.properties.append(
                CustomerRecord.Property(
                    name: statement.text(0), value: value ?? .null, updatedMilliseconds: statement.int64(2)))
        }
    }

    // MARK: Deleting

    private static func deleteEvents(
        _ condition: String, _ value: String, _ appID: String, _ events: SQLiteConnection
    ) throws -> Int {
        try events.transaction {
            let rows = try events.all(
                "SELECT seq, length(CAST(body AS BLOB)) FROM event WHERE \(condition) LIMIT ?3", .text(appID),
                .text(value), .integer(Int64(rowsPerCommit))
            ) { (seq: $0.int64(0), bytes: $0.int64(1)) }
            guard !rows.isEmpty else { return 0 }
            for row in rows { try events.run("DELETE FROM event WHERE seq = ?1", .integer(row.seq)) }
            try events.run(
                "UPDATE app_usage SET events = events - ?2, bytes = bytes - ?3 WHERE app_id = ?1",
                .text(appID), .integer(Int64(rows.count)), .integer(rows.reduce(0) { $0 + $1.bytes }))
            return rows.count
        }
    }

    /// Nil when the file is not there: no gateway has run yet.
    private func open(_ name: String, _ mode: SQLiteConnection.Mode) throws(GatewayError) -> SQLiteConnection?
    {
        let path = dataDirectory + "/" + name
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        return try Self.translate { try SQLiteConnection(path: path, mode: mode) }
    }

    private static func translate<Result>(_ body: () throws -> Result) throws(GatewayError) -> Result {
        do {
            return try body()
        } catch {
            throw GatewayError(.storage, "\(error)")
        }
    }
}
