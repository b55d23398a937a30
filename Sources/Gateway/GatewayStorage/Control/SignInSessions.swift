internal import CountersignCore
internal import CountersignCrypto
internal import CountersignSQLite
package import GatewayModel

/// Sign-ins of the dashboard's users.
extension AdminStore {
    /// The duration of a session, from the sign-in.
    package static let signInMilliseconds: Int64 = 12 * 3_600_000

    /// Opens a session for a user who has been authenticated. Returns the value of the session cookie.
    package func openSignInSession(for name: String, at milliseconds: Int64) throws(GatewayError) -> String {
        let token = Base64URL.encode(.random(count: 32))
        try write { connection in
            try connection.run("DELETE FROM admin_session WHERE expires_ms <= ?", .integer(milliseconds))
            try connection.run(
                "INSERT INTO admin_session (hash, \"user\", expires_ms) VALUES (?, ?, ?)",
                .blob(SHA256.digest(token)), .text(name),
                .integer(milliseconds + Self.signInMilliseconds))
            try connection.run(
                "UPDATE admin_user SET signed_in_ms = ?2 WHERE name = ?1", .text(name),
                .integer(milliseconds))
        }
        return token
    }

    package func noteBlockedSignIn(_ name: String, from address: String) throws(GatewayError) {
        try write { connection in
            try audit(
                connection, "session.blocked", String(name.prefix(64)), after: ["address": .string(address)])
        }
    }

    /// Nil when the session does not exist or has expired. `mustEnrol`: the user must first set up a second factor.
    package func signInSession(_ token: String, at milliseconds: Int64) throws(GatewayError) -> (
        user: AdminUser, expires: Int64, mustEnrol: Bool
    )? {
        try read { connection in
            let found = try connection.first(
                "SELECT \"user\", expires_ms FROM admin_session WHERE hash = ?1 AND expires_ms > ?2",
                .blob(SHA256.digest(token)), .integer(milliseconds)
            ) { ($0.text(0), $0.int64(1)) }
            return try found.map { name, expires in
                let user = try Self.user(name, connection)
                return (user, expires, try !user.hasSecondFactor && Self.requiresSecondFactor(connection))
            }
        }
    }

    package func closeSignInSession(_ token: String) throws(GatewayError) {
        try write {
            try $0.run("DELETE FROM admin_session WHERE hash = ?", .blob(SHA256.digest(token)))
        }
    }
}
