package import CountersignCore
internal import CountersignSQLite
package import GatewayModel
package import GatewayStorage

package struct PostgreSQLCustomerRecords: CustomerRecordStore {
    let pool: PostgreSQLPool

    package func find(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError)
        -> CustomerRecord?
    {
        try GatewayError.storing {
            try pool.use { connection in
                try Self.find(identifier, in: appID, connection) { identifier in
                    try connection.all(
                        """
                        SELECT count(*) FROM (
                            SELECT 1 FROM event WHERE \(Self.condition(identifier)) LIMIT \(Self.mostCounted)) AS own
                        """, Self.values(identifier, appID)
                    ) { $0.int(0) }.first ?? 0
                }
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
                try Self.delete(identifier, in: appID, connection) { identifier, after in
                    try connection.committing {
                        try Self.deletePiece(of: identifier, in: appID, after: after, connection)
                    }
                } samples: { user in
                    try connection.committing { try Self.deleteSamples(of: user, in: appID, connection) }
                } profile: { profile in
                    try connection.committing { try Self.deletePiece(ofProfile: profile, connection) }
                }
            }
        }
    }

    /// An SQL condition for events of a person. Parameters: the app, the id's value and the id's name.
    ///
    /// A cookie and another soft id may have equal values. So for the other soft id, the event must contain its name.
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

    /// Deletes events in one transaction. Returns their number, and the last examined event; nil if all were examined.
    private static func deletePiece(
        of identifier: CustomerIdentifier, in appID: String, after sequence: Int64,
        _ connection: PostgreSQLConnection
    ) throws -> (events: Int, scannedThrough: Int64?) {
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
    private static func deletePiece(
        ofProfile profile: String, _ connection: PostgreSQLConnection
    ) throws -> Bool {
        try connection.run("SELECT 1 FROM customer WHERE id = ?1 FOR UPDATE", .text(profile))
        return try connection.first(
            "SELECT is_whole FROM forget_customer(?1, \(rowsPerCommit))", .text(profile)
        ) { $0.int(0) != 0 } ?? true
    }

    /// Deletes samples by the request's user and by the token's `sub`, because a request may have another user's token.
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
