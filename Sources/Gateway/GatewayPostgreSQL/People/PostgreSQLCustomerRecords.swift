package import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
package import GatewayModel
package import GatewayStorage

package struct PostgreSQLCustomerRecords: CustomerRecordStore {
    private static let mostProperties = 1_000
    private static let propertyBytes = 1 << 20
    private static let mostCounted = 100_000
    /// The maximum number of rows deleted in a commit, so that other transactions do not wait for long.
    private static let rowsPerCommit = 500

    let pool: PostgreSQLPool

    package func find(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError)
        -> CustomerRecord?
    {
        try GatewayError.storing {
            try pool.use { connection in
                var record = CustomerRecord(identifiers: [identifier])
                let profile = try Self.profile(of: identifier, appID, connection)
                if let profile {
                    record.identifiers = try Self.identifiers(of: profile, connection)
                    let times = try connection.first(
                        "SELECT created_ms, seen_ms FROM customer WHERE id = ?1", .text(profile)
                    ) { ($0.int64(0), $0.int64(1)) }
                    (record.createdMilliseconds, record.seenMilliseconds) = (times?.0, times?.1)
                    try Self.readProperties(of: profile, connection, into: &record)
                }
                for identifier in record.identifiers where record.events < Self.mostCounted {
                    record.events +=
                        try connection.all(
                            """
                            SELECT count(*) FROM (
                                SELECT 1 FROM event WHERE \(Self.condition(identifier)) LIMIT \(Self.mostCounted)) AS own
                            """, Self.values(identifier, appID)
                        ) { $0.int(0) }.first ?? 0
                }
                record.events = min(record.events, Self.mostCounted)
                return profile == nil && record.events == 0 ? nil : record
            }
        }
    }

    package func apps() throws(GatewayError) -> BytewiseSet {
        try GatewayError.storing { try pool.use { try Self.apps($0) } }
    }

    package func delete(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError)
        -> CustomerDeletion
    {
        try GatewayError.storing {
            try pool.use { connection in
                var deletion = CustomerDeletion()
                var identifiers = [identifier]
                let profile = try Self.profile(of: identifier, appID, connection)
                if let profile { identifiers = try Self.identifiers(of: profile, connection) }
                for identifier in identifiers {
                    var reached: Int64? = 0
                    while let after = reached {
                        let piece = try connection.committing {
                            try Self.deletePiece(of: identifier, in: appID, after: after, connection)
                        }
                        deletion.events += piece.events
                        reached = piece.reached
                    }
                }
                for identifier in identifiers where identifier.isHard {
                    deletion.samples += try connection.committing {
                        try Self.deleteSamples(of: identifier.value, in: appID, connection)
                    }
                }
                // The profile is deleted last: a repeated deletion needs its list of the person's ids.
                if let profile {
                    while try !connection.committing({ try Self.forgetPiece(profile, connection) }) {}
                    deletion.hasProfile = true
                }
                return deletion
            }
        }
    }

    // MARK: Reading

    /// An SQL condition for events of a person. Parameters: the app, the id's value and the id's name.
    ///
    /// Another soft id may have the same value as a cookie, so the event must also contain the id's name.
    private static func condition(_ identifier: CustomerIdentifier) -> String {
        if identifier.isHard { return "app_id = ?1 AND user_id = ?2 AND ?3::text IS NOT NULL" }
        let device = "app_id = ?1 AND anonymous_id = ?2 AND user_id IS NULL AND "
        return identifier.isCookie
            ? device + "?3::text IS NOT NULL"
            : device + "json_member(json_member(body, 'customer_ids'), ?3) = ?2"
    }

    private static func values(_ identifier: CustomerIdentifier, _ appID: String) -> [SQLValue] {
        [.text(appID), .text(identifier.value), .text(identifier.name)]
    }

    private static func profile(
        of identifier: CustomerIdentifier, _ appID: String, _ connection: PostgreSQLConnection
    ) throws -> String? {
        try connection.first(
            "SELECT customer_id FROM customer_identifier WHERE app_id = ?1 AND name = ?2 AND value = ?3",
            .text(appID), .text(identifier.name), .text(identifier.value)
        ) { $0.text(0) }
    }

    private static func identifiers(
        of profile: String, _ connection: PostgreSQLConnection
    ) throws -> [CustomerIdentifier] {
        try connection.all(
            "SELECT name, value FROM customer_identifier WHERE customer_id = ?1 ORDER BY seq", .text(profile)
        ) { CustomerIdentifier(name: $0.text(0), value: $0.text(1)) }
    }

    private static func readProperties(
        of profile: String, _ connection: PostgreSQLConnection, into record: inout CustomerRecord
    ) throws {
        var bytes = 0
        try connection.each(
            """
            SELECT name, value, updated_ms FROM customer_property WHERE customer_id = ?1 AND value <> 'null'
            ORDER BY name LIMIT \(mostProperties + 1)
            """, [.text(profile)]
        ) { row in
            let text = row.blob(1)
            bytes += text.count
            guard record.properties.count < mostProperties, bytes <= propertyBytes else {
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

    // MARK: Deleting

    /// Deletes events in one transaction. Returns their number, and the last examined event; nil if all were examined.
    private static func deletePiece(
        of identifier: CustomerIdentifier, in appID: String, after sequence: Int64,
        _ connection: PostgreSQLConnection
    ) throws -> (events: Int, reached: Int64?) {
        let rows = try connection.all(
            """
            SELECT position, day FROM event WHERE \(condition(identifier)) AND position > ?4
            ORDER BY position LIMIT \(rowsPerCommit)
            """, values(identifier, appID) + [.integer(sequence)]
        ) { EventErasure.Row(position: $0.int64(0), day: $0.int64(1)) }
        let count = try EventErasure.delete(rows, of: appID, connection)
        return (count, rows.count == rowsPerCommit ? rows.last?.position : nil)
    }

    /// Deletes a part of a profile in one transaction. Returns whether the profile is completely deleted.
    private static func forgetPiece(_ profile: String, _ connection: PostgreSQLConnection) throws -> Bool {
        try connection.run("SELECT 1 FROM customer WHERE id = ?1 FOR UPDATE", .text(profile))
        return try connection.first(
            "SELECT is_whole FROM forget_customer(?1, \(rowsPerCommit))", .text(profile)
        ) { $0.int(0) != 0 } ?? true
    }

    /// Deletes samples by user and by token, because the token of a request may belong to another user.
    private static func deleteSamples(
        of user: String, in appID: String, _ connection: PostgreSQLConnection
    ) throws -> Int {
        try connection.run(
            "DELETE FROM sample WHERE app_id = ?1 AND (user_id = ?2 OR json_member(claims, 'sub') = ?2)",
            .text(appID), .text(user))
        let samples = connection.changes
        try connection.run(
            #"DELETE FROM failed_user_hour WHERE app_id = ?1 AND "user" = ?2"#, .text(appID),
            .integer(Int64(bitPattern: DistinctCounter.hash(user))))
        return samples
    }
}
