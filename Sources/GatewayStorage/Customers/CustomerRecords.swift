package import CountersignCore
internal import CountersignJOSE
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// What is kept of one person: the profile, and how many events.
package struct CustomerRecord: Sendable {
    package struct Property: Sendable {
        package let name: String
        package let value: JSONValue
        package let updatedMilliseconds: Int64
    }

    package var identifiers: [CustomerIdentifier]
    package var properties: [Property] = []
    /// True when there are properties that are not read: 1,000, or 1 MiB, are.
    package var hasMoreProperties = false
    /// When the profile began, in milliseconds since 1970; nil when there is none.
    package var createdMilliseconds: Int64?
    /// When the person was seen last, to the hour; nil when there is no profile.
    package var seenMilliseconds: Int64?
    /// How many events are kept; 100,000 stands for as many or more.
    package var events = 0
}

/// What was deleted of one person.
package struct CustomerDeletion: Sendable, Equatable {
    package var hasProfile = false
    package var events = 0
    /// Samples of failed requests.
    package var samples = 0

    package var isEmpty: Bool { self == CustomerDeletion() }
}

/// Finds and deletes what is kept of one person, whether or not a gateway runs.
///
/// A person is known by a `registered` id, which is the user id of events, or by another id of a profile.
package protocol CustomerRecordStore: Sendable {
    /// What there is; nil when there is neither a profile nor an event.
    func find(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError) -> CustomerRecord?

    /// Deletes the profile, the events and the samples: the events of the user, and those that the profile's devices sent
    /// before anybody had signed in. What is stored meanwhile may stay, and what could not be deleted: try again.
    func delete(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError) -> CustomerDeletion
}

/// What is kept of one person in `events.sqlite` and `analytics.sqlite`.
package struct CustomerRecords: CustomerRecordStore {

    private static let mostProperties = 1_000
    private static let propertyBytes = 1 << 20
    private static let mostCounted = 100_000
    /// Rows and bytes that one commit deletes, so that the gateway's own writer never waits long for it.
    private static let rowsPerCommit = 500
    static let bytesPerCommit: Int64 = 4 << 20

    let events: SQLiteReaders
    let analytics: SQLiteReaders

    package func find(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError)
        -> CustomerRecord?
    {
        guard events.isThere else { return nil }
        return try events.read { events in
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
            for identifier in record.identifiers {
                record.events +=
                    try events.first(
                        """
                        SELECT count(*) FROM (
                            SELECT 1 FROM event WHERE \(Self.condition(identifier)) LIMIT ?4)
                        """, .text(appID), .text(identifier.value), .text(identifier.name),
                        .integer(Int64(Self.mostCounted))
                    ) { $0.int(0) } ?? 0
            }
            record.events = min(record.events, Self.mostCounted)
            return profile == nil && record.events == 0 ? nil : record
        }
    }

    /// The space is overwritten.
    package func delete(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError)
        -> CustomerDeletion
    {
        var deletion = CustomerDeletion()
        guard let events = try writer(of: events) else { return deletion }
        var identifiers = [identifier]
        try GatewayError.storing {
            try events.execute("PRAGMA secure_delete = ON; PRAGMA synchronous = FULL")
            let profile = try Self.profile(of: identifier, appID, events)
            if let profile { identifiers = try Self.identifiers(of: profile, events) }
            while true {
                let piece = try Self.leavingTime {
                    try Self.deletePiece(of: identifiers, in: appID, events)
                }
                deletion.events += piece.events
                if piece.isLast { break }
            }
            // The profile goes last: it says which devices are this person's, should this be interrupted.
            if let profile {
                while try !Self.leavingTime({ try Self.forgetPiece(profile, events) }) {}
                deletion.hasProfile = true
            }
        }
        guard let analytics = try writer(of: analytics) else { return deletion }
        try GatewayError.storing {
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

    /// What all events from a person's id have in common, with the app as ?1, the id's value as ?2 and its name as ?3.
    ///
    /// A device is known by its cookie. An id of another name may have the same value as somebody else's device, so the
    /// event must say that it is meant.
    private static func condition(_ identifier: CustomerIdentifier) -> String {
        if identifier.isHard { return "app_id = ?1 AND user_id = ?2 AND ?3 = ?3" }
        let device = "app_id = ?1 AND anonymous_id = ?2 AND user_id IS NULL AND "
        return identifier.isCookie
            ? device + "?3 = ?3"
            : device
                + """
                EXISTS (SELECT 1 FROM json_each(iif(json_valid(body), body, '{}'), '$.customer_ids')
                    WHERE key = ?3 AND value = ?2)
                """
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

    /// Does a piece of work, and then leaves the file to others for twice as long: whoever waits for it, such as the
    /// gateway's own writer, looks from time to time only whether it is free.
    private static func leavingTime<Value>(_ work: () throws -> Value) rethrows -> Value {
        let began = DispatchTime.now().uptimeNanoseconds
        let value = try work()
        let taken = Double(DispatchTime.now().uptimeNanoseconds - began) / 1e9
        Thread.sleep(forTimeInterval: max(0.005, 2 * taken))
        return value
    }

    /// Deletes as much of a person's events as one commit may.
    ///
    /// - Returns: How many, and whether there were no more.
    static func deletePiece(
        of identifiers: [CustomerIdentifier], in appID: String, _ events: SQLiteConnection
    ) throws -> (events: Int, isLast: Bool) {
        for identifier in identifiers {
            let count = try deleteEvents(of: identifier, appID, events)
            if count > 0 { return (count, false) }
        }
        return (0, true)
    }

    private static func deleteEvents(
        of identifier: CustomerIdentifier, _ appID: String, _ events: SQLiteConnection
    ) throws -> Int {
        try events.transaction {
            let rows = try events.all(
                "SELECT seq FROM event WHERE \(condition(identifier)) LIMIT ?4", .text(appID),
                .text(identifier.value), .text(identifier.name), .integer(Int64(rowsPerCommit))
            ) { $0.int64(0) }
            var (count, bytes) = (0, Int64(0))
            for row in rows where bytes < bytesPerCommit {
                bytes +=
                    try events.first(
                        "DELETE FROM event WHERE seq = ?1 RETURNING length(CAST(body AS BLOB))", .integer(row)
                    ) { $0.int64(0) } ?? 0
                count += 1
            }
            guard count > 0 else { return 0 }
            try events.run(
                "UPDATE app_usage SET events = events - ?2, bytes = bytes - ?3 WHERE app_id = ?1",
                .text(appID), .integer(Int64(count)), .integer(bytes))
            return count
        }
    }

    /// Deletes as much of a profile as one commit may; true when nothing is left.
    private static func forgetPiece(_ profile: String, _ events: SQLiteConnection) throws -> Bool {
        try events.transaction {
            let bytes =
                try events.first("SELECT bytes FROM customer WHERE id = ?1", .text(profile)) { $0.int64(0) }
                ?? 0
            // Of one that has much a few rows at a time: any of them may be long.
            return try CustomerWriter.forget(
                profile, rows: bytes > bytesPerCommit ? 8 : rowsPerCommit, events)
        }
    }

    /// Nil when the file is not there: no gateway has run yet.
    private func writer(of file: SQLiteReaders) throws(GatewayError) -> SQLiteConnection? {
        guard file.isThere else { return nil }
        return try GatewayError.storing { try SQLiteConnection(path: file.path) }
    }
}
