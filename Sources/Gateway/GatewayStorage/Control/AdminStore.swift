internal import CountersignCore
internal import CountersignCrypto
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// A user of the dashboard.
package struct AdminUser: Sendable {
    package let name: String
    package let role: AdminRole
    package let createdMilliseconds: Int64
    package let signedInMilliseconds: Int64?
    /// Whether signing in requires a code in addition to the password.
    package let hasSecondFactor: Bool
    /// The number of unused recovery codes.
    package let recoveryCodes: Int
    package let password: PasswordHash
}

/// Stores the users of the dashboard and their sessions.
package struct AdminStore: ControlStore {
    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    package static let setupMilliseconds: Int64 = 30 * 60_000

    /// Sorted by name.
    package func users() throws(GatewayError) -> [AdminUser] {
        try read { try Self.users($0) }
    }

    /// Returns a new token for a one-time setup link, valid for 30 minutes. The previous token becomes invalid.
    package func makeSetupToken(at milliseconds: Int64) throws(GatewayError) -> String {
        let token = Base64URL.encode(.random(count: 24))
        try write { connection in
            try connection.run("DELETE FROM admin_setup")
            try connection.run(
                "INSERT INTO admin_setup (hash, expires_ms) VALUES (?, ?)", .blob(SHA256.digest(token)),
                .integer(milliseconds + Self.setupMilliseconds))
            try audit(connection, "setup.link", "", at: milliseconds)
        }
        return token
    }

    /// Whether the token is valid. The token can still be used afterwards.
    package func isSetupToken(_ token: String, at milliseconds: Int64) throws(GatewayError) -> Bool {
        try read { connection in
            try connection.first(
                "SELECT 1 FROM admin_setup WHERE hash = ?1 AND expires_ms > ?2",
                .blob(SHA256.digest(token)), .integer(milliseconds)
            ) { _ in true } ?? false
        }
    }

    /// Uses a setup link: creates an owner, or makes a user an owner with a new password and no second factor. Throws
    /// `notFound` when the token is not valid.
    package func setUp(
        token: String, name: String, password: PasswordHash, at milliseconds: Int64
    ) throws(GatewayError) {
        try Self.check(name: name)
        try write { connection in
            try connection.run(
                "DELETE FROM admin_setup WHERE hash = ?1 AND expires_ms > ?2",
                .blob(SHA256.digest(token)), .integer(milliseconds))
            guard connection.changes > 0 else {
                throw GatewayError(
                    .notFound, "the link has been used or replaced, or is older than 30 minutes")
            }
            try connection.run("DELETE FROM admin_session WHERE \"user\" = ?", .text(name))
            try Self.deleteSecondFactor(of: name, connection)
            try connection.run(
                """
                INSERT INTO admin_user (name, role, password, created_ms, signed_in_ms) VALUES (?1, 'owner', ?2, ?3, NULL)
                ON CONFLICT (name) DO UPDATE SET role = 'owner', password = ?2
                """, .text(name), .text(password.text), .integer(milliseconds))
            try audit(connection, "user.setup", name, after: ["role": "owner"], at: milliseconds)
        }
    }

    package func createUser(name: String, role: AdminRole, password: PasswordHash) throws(GatewayError) {
        try Self.check(name: name)
        try write { connection in
            try connection.run(
                """
                INSERT INTO admin_user (name, role, password, created_ms) VALUES (?, ?, ?, ?)
                ON CONFLICT DO NOTHING
                """, .text(name),
                .text(role.rawValue), .text(password.text), .integer(nowMilliseconds))
            guard connection.changes > 0 else {
                throw GatewayError(.conflict, "there is already a user \(name)")
            }
            try audit(connection, "user.create", name, after: ["role": .string(role.rawValue)])
        }
    }

    /// A new role or password ends the user's sessions except `session`. Throws `conflict` when no owner would remain.
    package func changeUser(
        _ name: String, role: AdminRole?, password: PasswordHash?, keeping session: String? = nil
    ) throws(GatewayError) {
        try write { connection in
            let user = try Self.user(name, connection)
            if let role {
                try connection.run(
                    "UPDATE admin_user SET role = ?2 WHERE name = ?1", .text(name), .text(role.rawValue))
                try Self.checkOwner(connection)
            }
            if let password {
                try connection.run(
                    "UPDATE admin_user SET password = ?2 WHERE name = ?1", .text(name), .text(password.text))
            }
            if password != nil || (role ?? user.role) != user.role {
                try connection.run(
                    "DELETE FROM admin_session WHERE \"user\" = ?1 AND hash <> ?2", .text(name),
                    .blob(session.map { SHA256.digest($0) } ?? []))
            }
            try audit(
                connection, "user.change", name, before: ["role": .string(user.role.rawValue)],
                after: [
                    "role": .string((role ?? user.role).rawValue), "password_changed": .bool(password != nil),
                ])
        }
    }

    /// Deletes a user and ends the user's sessions. Throws `conflict` when no owner would remain.
    package func deleteUser(_ name: String) throws(GatewayError) {
        try write { connection in
            let user = try Self.user(name, connection)
            try connection.run("DELETE FROM admin_user WHERE name = ?", .text(name))
            try Self.checkOwner(connection)
            try audit(connection, "user.delete", name, before: ["role": .string(user.role.rawValue)])
        }
    }

    // MARK: Rows

    private static func check(name: String) throws(GatewayError) {
        // In the audit log, other actors have names with a colon, and the gateway itself has the name `gateway`.
        guard (1...64).contains(name.utf8.count), name.isPrintable,
            !name.contains(":"), !name.contains(where: \.isWhitespace), name != Operator.schedule.name,
            GivenName.isUsable(name)
        else {
            throw GatewayError(
                .invalid,
                "a user's name must have 1 to 64 bytes of printable text without spaces or colons, must not be gateway, and "
                    + GivenName.rule
            )
        }
    }

    private static func checkOwner(_ connection: any SQLConnection) throws {
        guard try users(connection).contains(where: { $0.role == .owner }) else {
            throw GatewayError(
                .conflict, "the last owner cannot be removed: make another user an owner first")
        }
    }

    static func user(_ name: String, _ connection: any SQLConnection) throws -> AdminUser {
        guard let user = try users(connection).first(where: { $0.name == name }) else {
            throw GatewayError(.notFound, "there is no user \(name)")
        }
        return user
    }

    private static func users(_ connection: any SQLConnection) throws -> [AdminUser] {
        try connection.all(
            """
            SELECT name, role, created_ms, signed_in_ms, password,
                EXISTS (SELECT 1 FROM admin_second_factor WHERE "user" = name AND is_on = 1),
                (SELECT count(*) FROM admin_recovery_code WHERE "user" = name)
            FROM admin_user ORDER BY name
            """
        ) { row in
            AdminUser(
                name: row.text(0), role: AdminRole(rawValue: row.text(1)) ?? .viewer,
                createdMilliseconds: row.int64(2), signedInMilliseconds: row.optionalInt64(3),
                hasSecondFactor: row.int64(5) != 0, recoveryCodes: row.int(6),
                password: PasswordHash(text: row.text(4)))
        }
    }
}
