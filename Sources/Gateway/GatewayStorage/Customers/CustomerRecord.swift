package import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
package import GatewayModel

/// The stored data of a customer: the profile and the number of events.
package struct CustomerRecord: Sendable {
    package struct Property: Sendable {
        package let name: String
        package let value: JSONValue
        package let updatedMilliseconds: Int64
    }

    package var identifiers: [CustomerIdentifier]
    package var properties: [Property] = []
    /// Whether the customer has more properties than are read: 1,000 properties or 1 MiB of values.
    package var hasMoreProperties = false
    /// In milliseconds since 1970; nil without a profile.
    package var createdMilliseconds: Int64?
    /// When the person was seen last, to the hour; nil without a profile.
    package var seenMilliseconds: Int64?
    /// The number of stored events; 100,000 means as many or more.
    package var events = 0
}

package struct CustomerDeletion: Sendable, Equatable {
    package var hasProfile = false
    package var events = 0
    /// Samples of failed requests.
    package var samples = 0

    package init() {}

    package var isEmpty: Bool { self == CustomerDeletion() }
}

/// Finds and deletes the stored data of one person, whether or not a gateway runs.
///
/// A `registered` id, which is the user id of events, or another id of a profile identifies the person.
package protocol CustomerRecordStore: Sendable {
    /// Nil when the person has neither a profile nor events.
    func find(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError) -> CustomerRecord?

    /// The ids of the apps that have at least one customer profile.
    func apps() throws(GatewayError) -> BytewiseSet

    /// Deletes the person's data, including events that the profile's devices sent before the user signed in. Does not
    /// delete the events of a device whose id was replaced (``CustomerWriter/maximumSoftIDs``). Repeat the call after
    /// an error, and for events that are stored during the call.
    func delete(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError) -> CustomerDeletion
}

extension CustomerRecordStore {
    /// Reads one index entry for each app.
    package static func apps(_ connection: any SQLConnection) throws -> BytewiseSet {
        BytewiseSet(
            try connection.all(
                """
                WITH RECURSIVE own (id) AS (
                    SELECT min(app_id) FROM customer
                    UNION ALL SELECT (SELECT min(app_id) FROM customer WHERE app_id > own.id)
                    FROM own WHERE own.id IS NOT NULL)
                SELECT id FROM own WHERE id IS NOT NULL
                """, []
            ) { $0.text(0) })
    }

    /// The maximum number of an id's events that are counted.
    package static var mostCounted: Int { 100_000 }
    /// The maximum number of events, or of rows in each table of a profile, deleted in a commit, to limit waits.
    package static var rowsPerCommit: Int { 500 }

    /// `count` returns the number of events with an id, up to ``mostCounted``.
    package static func find(
        _ identifier: CustomerIdentifier, in appID: String, _ connection: any SQLConnection,
        count: (CustomerIdentifier) throws -> Int
    ) throws -> CustomerRecord? {
        var record = CustomerRecord(identifiers: [identifier])
        let profile = try profile(of: identifier, appID, connection)
        if let profile {
            record.identifiers = try identifiers(of: profile, connection)
            let times = try connection.first(
                "SELECT created_ms, seen_ms FROM customer WHERE id = ?1", .text(profile)
            ) { ($0.int64(0), $0.int64(1)) }
            (record.createdMilliseconds, record.seenMilliseconds) = (times?.0, times?.1)
            try readProperties(of: profile, connection, into: &record)
        }
        for identifier in record.identifiers where record.events < mostCounted {
            record.events += try count(identifier)
        }
        record.events = min(record.events, mostCounted)
        return profile == nil && record.events == 0 ? nil : record
    }

    /// Each closure commits its work. `events` deletes events with an id after a sequence number, and returns their
    /// number and the last examined event, or nil if all were examined. `samples` deletes the samples of a user and
    /// returns their number. `profile` deletes a part of a profile and returns whether nothing of the profile is left.
    package static func delete(
        _ identifier: CustomerIdentifier, in appID: String, _ connection: any SQLConnection,
        events: (CustomerIdentifier, Int64) throws -> (events: Int, scannedThrough: Int64?),
        samples: (String) throws -> Int, profile deleteProfile: (String) throws -> Bool
    ) throws -> CustomerDeletion {
        var deletion = CustomerDeletion()
        let profile = try profile(of: identifier, appID, connection)
        let identifiers = try profile.map { try Self.identifiers(of: $0, connection) } ?? [identifier]
        for identifier in identifiers {
            var scannedThrough: Int64? = 0
            while let after = scannedThrough {
                let piece = try events(identifier, after)
                deletion.events += piece.events
                scannedThrough = piece.scannedThrough
            }
        }
        for identifier in identifiers where identifier.isHard {
            deletion.samples += try samples(identifier.value)
        }
        // The profile is deleted last: a repeated deletion needs its list of the person's ids.
        if let profile {
            while try !deleteProfile(profile) {}
            deletion.hasProfile = true
        }
        return deletion
    }

    private static func profile(
        of identifier: CustomerIdentifier, _ appID: String, _ connection: any SQLConnection
    ) throws -> String? {
        try connection.first(
            "SELECT customer_id FROM customer_identifier WHERE app_id = ?1 AND name = ?2 AND value = ?3",
            .text(appID), .text(identifier.name), .text(identifier.value)
        ) { $0.text(0) }
    }

    private static func identifiers(
        of profile: String, _ connection: any SQLConnection
    ) throws -> [CustomerIdentifier] {
        try connection.all(
            "SELECT name, value FROM customer_identifier WHERE customer_id = ?1 ORDER BY seq", .text(profile)
        ) { CustomerIdentifier(name: $0.text(0), value: $0.text(1)) }
    }

    private static func readProperties(
        of profile: String, _ connection: any SQLConnection, into record: inout CustomerRecord
    ) throws {
        let (most, mostBytes) = (1_000, 1 << 20)
        var bytes = 0
        try connection.each(
            """
            SELECT name, value, updated_ms FROM customer_property WHERE customer_id = ?1 AND value <> 'null'
            ORDER BY name LIMIT \(most + 1)
            """, [.text(profile)]
        ) { row in
            let text = row.blob(1)
            bytes += text.count
            guard record.properties.count < most, bytes <= mostBytes else {
                record.hasMoreProperties = true
                return false
            }
            let value = try? StrictJSONParser(maximumBytes: max(1, text.count), maximumNameBytes: 1_024)
                .parse(bytes: text) { $0.value }
            record.properties.append(
                CustomerRecord.Property(
                    name: row.text(0), value: value ?? .null, updatedMilliseconds: row.int64(2)))
            return true
        }
    }
}
