package import CountersignCore
internal import CountersignCrypto
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// Stores the restrictions of users and devices, called measures in messages to operators.
package struct RestrictionStore: ControlStore {
    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    /// The maximum number of an app's active restrictions. Revocations accumulate if tokens have no maximum lifetime.
    package static let most = 10_000

    /// How long restrictions are stored after their end. A revocation that was deleted while the clock was ahead
    /// would not apply after the clock is corrected.
    private static let storedMilliseconds: Int64 = 30 * 86_400_000

    /// Stores a restriction, in place of one with the same action and user or device. Throws `conflict` for too many.
    package func put(_ restriction: UserRestriction, in appID: String) throws(GatewayError) {
        try write { connection in
            try Self.checkApp(appID, connection)
            try connection.run(
                "DELETE FROM user_restriction WHERE until_ms <= ?1",
                .integer(nowMilliseconds - Self.storedMilliseconds))
            let replaced = try Self.all(of: appID, connection).first {
                $0.subject == restriction.subject && $0.id == restriction.id
                    && $0.action == restriction.action
            }
            if let replaced { try Self.delete(replaced.key, connection) }
            let count = try connection.first(
                """
                SELECT count(*) FROM user_restriction
                WHERE app_id = ?1 AND (until_ms IS NULL OR until_ms > ?2)
                """, .text(appID), .integer(nowMilliseconds)
            ) { $0.int(0) }
            guard count ?? 0 < Self.most else {
                throw GatewayError(
                    .conflict,
                    "the app has \(Self.most) restrictions of users: lift some, or set a maximum lifetime of "
                        + "tokens, so that revocations end")
            }
            try connection.run(
                """
                INSERT INTO user_restriction
                    (key, app_id, subject, id, action, per_minute, reason, since_ms, until_ms)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                """, .text(restriction.key), .text(appID), .text(restriction.subject.rawValue),
                .text(restriction.id), .text(restriction.action.rawValue),
                restriction.requestsPerMinute.map { .integer(Int64($0)) } ?? .null,
                .text(restriction.reason), .integer(restriction.sinceMilliseconds),
                restriction.untilMilliseconds.map { .integer($0) } ?? .null)
            try audit(
                connection, "restriction.\(restriction.action.rawValue)", restriction.id, app: appID,
                before: replaced.map { UserRestriction.shape.json($0) },
                after: UserRestriction.shape.json(restriction))
        }
    }

    package func remove(_ key: String, from appID: String) throws(GatewayError) {
        try write { connection in
            try Self.checkApp(appID, connection)
            guard let known = try Self.all(of: appID, connection).first(where: { $0.key == key }) else {
                throw GatewayError(.notFound, "the app has no restriction \(key)")
            }
            try Self.delete(key, connection)
            try audit(
                connection, "restriction.remove", known.id, app: appID,
                before: UserRestriction.shape.json(known))
        }
    }

    /// The restrictions that have not ended, in the order of their start.
    package func all(of appID: String) throws(GatewayError) -> [UserRestriction] {
        try read { connection in
            try Self.checkApp(appID, connection)
            return try Self.all(of: appID, connection)
        }.filter { $0.untilMilliseconds ?? .max > nowMilliseconds }
    }

    package func all() throws(GatewayError) -> BytewiseDictionary<[UserRestriction]> {
        try read { try Self.rows(nil, $0) }
    }

    private static func all(of appID: String, _ connection: any SQLConnection) throws -> [UserRestriction] {
        try rows(appID, connection)[appID] ?? []
    }

    private static func delete(_ key: String, _ connection: any SQLConnection) throws {
        try connection.run("DELETE FROM user_restriction WHERE key = ?1", .text(key))
    }

    private static func rows(
        _ appID: String?, _ connection: any SQLConnection
    ) throws -> BytewiseDictionary<[UserRestriction]> {
        let rows = try connection.all(
            """
            SELECT app_id, key, subject, id, action, per_minute, reason, since_ms, until_ms
            FROM user_restriction \(appID == nil ? "" : "WHERE app_id = ?1") ORDER BY since_ms, key
            """, appID.map { [.text($0)] } ?? []
        ) { row -> (String, UserRestriction?) in
            // Ignores rows of a later version with an unknown subject or action.
            guard let subject = UserRestriction.Subject(rawValue: row.text(2)),
                let action = UserRestriction.Action(rawValue: row.text(4))
            else { return (row.text(0), nil) }
            return (
                row.text(0),
                UserRestriction(
                    key: row.text(1), subject: subject, id: row.text(3), action: action,
                    requestsPerMinute: row.isNull(5) ? nil : row.int(5), reason: row.text(6),
                    sinceMilliseconds: row.int64(7),
                    untilMilliseconds: row.isNull(8) ? nil : row.int64(8))
            )
        }
        var found: BytewiseDictionary<[UserRestriction]> = [:]
        for (appID, restriction) in rows {
            if let restriction { found[appID, default: []].append(restriction) }
        }
        return found
    }
}
