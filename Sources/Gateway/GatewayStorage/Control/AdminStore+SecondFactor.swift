internal import CountersignCore
internal import CountersignCrypto
internal import CountersignSQLite
package import GatewayModel

extension AdminStore {
    package func requiresSecondFactor() throws(GatewayError) -> Bool {
        try read { try Self.requiresSecondFactor($0) }
    }

    static func requiresSecondFactor(_ connection: any SQLConnection) throws -> Bool {
        try connection.first("SELECT second_factor_required FROM sign_in_rules") { $0.int64(0) != 0 } ?? false
    }

    /// Sets whether all users need a second factor. Also applies to users who are signed in.
    package func setRequiresSecondFactor(_ isRequired: Bool) throws(GatewayError) {
        try write { connection in
            let before = try Self.requiresSecondFactor(connection)
            try connection.run(
                """
                INSERT INTO sign_in_rules (id, second_factor_required) VALUES (1, ?)
                ON CONFLICT (id) DO UPDATE SET second_factor_required = excluded.second_factor_required
                """,
                .integer(isRequired ? 1 : 0))
            try audit(
                connection, "sign_in_rules.set", "second_factor",
                before: ["second_factor_required": .bool(before)],
                after: ["second_factor_required": .bool(isRequired)])
        }
    }

    /// The time limit for confirming a new secret with its first code.
    package static let begunMilliseconds: Int64 = 10 * 60_000

    /// Stores a secret for ``begunMilliseconds``, until the first code confirms it. Replaces an unconfirmed secret.
    /// Throws `conflict` if the user already has a second factor.
    package func beginSecondFactor(
        _ password: OneTimePassword, of name: String, at milliseconds: Int64
    ) throws(GatewayError) {
        try write { connection in
            guard try !Self.user(name, connection).hasSecondFactor else {
                throw GatewayError(.conflict, "there is already a second factor: turn it off first")
            }
            let stored = try connection.sealed(password.secret, .secondFactor, name)
            try connection.run(
                """
                INSERT INTO admin_second_factor ("user", secret, is_on, last_step, begun_ms) VALUES (?, ?, 0, 0, ?)
                ON CONFLICT ("user") DO UPDATE SET secret = excluded.secret, is_on = 0, last_step = 0,
                    begun_ms = excluded.begun_ms
                """, .text(name), .blob(stored), .integer(milliseconds))
        }
    }

    /// Enables the second factor if the code matches, and ends the user's other sessions. Returns the recovery codes,
    /// which are shown only once; nil for a wrong code. Throws `conflict` without an unconfirmed secret.
    package func confirmSecondFactor(
        _ code: String, of name: String, at milliseconds: Int64, keeping session: String
    ) throws(GatewayError) -> [String]? {
        try write { connection in
            let found = try connection.first(
                """
                SELECT secret FROM admin_second_factor
                WHERE "user" = ?1 AND is_on = 0 AND begun_ms > ?2 AND begun_ms <= ?3
                """, .text(name), .integer(milliseconds - Self.begunMilliseconds),
                .integer(DueTime.last(at: milliseconds, within: 0))
            ) { OneTimePassword(secret: try connection.opened($0.blob(0), .secondFactor, name)) }
            guard let found else {
                throw GatewayError(
                    .conflict,
                    "no second factor is waiting for its first code, which must come within 10 minutes: start again"
                )
            }
            guard let step = found.step(of: code, at: milliseconds, after: 0) else { return nil }
            try connection.run(
                "UPDATE admin_second_factor SET is_on = 1, last_step = ?2 WHERE \"user\" = ?1", .text(name),
                .integer(step))
            try connection.run(
                "DELETE FROM admin_session WHERE \"user\" = ?1 AND hash <> ?2", .text(name),
                .blob(SHA256.digest(session)))
            let codes = try Self.newRecoveryCodes(of: name, connection)
            try audit(connection, "second_factor.enable", name)
            return codes
        }
    }

    /// Accepts a code of the authenticator app or a recovery code, each once. Returns false for a wrong or used code.
    package func useSecondFactor(_ code: String, of name: String, at milliseconds: Int64) throws(GatewayError)
        -> Bool
    {
        try write { connection in
            let found = try connection.first(
                "SELECT secret, last_step FROM admin_second_factor WHERE \"user\" = ? AND is_on = 1",
                .text(name)
            ) { row in
                let secret = try connection.opened(row.blob(0), .secondFactor, name)
                return (OneTimePassword(secret: secret), row.int64(1))
            }
            guard let (password, last) = found else { return false }
            let digits = String(code.unicodeScalars.filter { $0 != " " })
            if digits.utf8.count == OneTimePassword.digits {
                guard let step = password.step(of: digits, at: milliseconds, after: last) else {
                    return false
                }
                try connection.run(
                    "UPDATE admin_second_factor SET last_step = ?2 WHERE \"user\" = ?1", .text(name),
                    .integer(step))
                return true
            }
            try connection.run(
                "DELETE FROM admin_recovery_code WHERE \"user\" = ?1 AND hash = ?2", .text(name),
                .blob(RecoveryCode.hash(code)))
            guard connection.changes > 0 else { return false }
            let left = try Self.user(name, connection).recoveryCodes
            try audit(
                connection, "second_factor.recovery_code_used", name, after: ["left": .integer(Int64(left))],
                at: milliseconds)
            return true
        }
    }

    /// Replaces the recovery codes. The new codes are shown only once. Throws `conflict` without a second factor.
    package func renewRecoveryCodes(of name: String) throws(GatewayError) -> [String] {
        try write { connection in
            guard try Self.user(name, connection).hasSecondFactor else { throw Self.noSecondFactor }
            let codes = try Self.newRecoveryCodes(of: name, connection)
            try audit(connection, "second_factor.recovery_codes", name)
            return codes
        }
    }

    /// Throws `conflict` when the user has no second factor, or when all users need one.
    package func disableSecondFactor(of name: String) throws(GatewayError) {
        try write { connection in
            guard try Self.user(name, connection).hasSecondFactor else { throw Self.noSecondFactor }
            guard try !Self.requiresSecondFactor(connection) else {
                throw GatewayError(.conflict, "all users need a second factor: an owner can end this rule")
            }
            try Self.deleteSecondFactor(of: name, connection)
            try audit(connection, "second_factor.disable", name)
        }
    }

    /// Removes a lost second factor, and ends the user's sessions. Does nothing without a second factor.
    package func resetSecondFactor(of name: String) throws(GatewayError) {
        try write { connection in
            guard try Self.user(name, connection).hasSecondFactor else { return }
            try Self.deleteSecondFactor(of: name, connection)
            try connection.run("DELETE FROM admin_session WHERE \"user\" = ?", .text(name))
            try audit(connection, "second_factor.reset", name)
        }
    }

    static func deleteSecondFactor(of name: String, _ connection: any SQLConnection) throws {
        try connection.run("DELETE FROM admin_second_factor WHERE \"user\" = ?", .text(name))
        try connection.run("DELETE FROM admin_recovery_code WHERE \"user\" = ?", .text(name))
    }

    private static func newRecoveryCodes(of name: String, _ connection: any SQLConnection) throws -> [String]
    {
        try connection.run("DELETE FROM admin_recovery_code WHERE \"user\" = ?", .text(name))
        let codes = (0..<RecoveryCode.count).map { _ in RecoveryCode.random() }
        for code in codes {
            try connection.run(
                "INSERT INTO admin_recovery_code (\"user\", hash) VALUES (?, ?)", .text(name),
                .blob(RecoveryCode.hash(code)))
        }
        return codes
    }

    private static let noSecondFactor = GatewayError(.conflict, "there is no second factor")
}
