internal import CPostgreSQL
internal import CountersignCore
internal import Foundation
package import GatewayModel

package struct PostgreSQLSettings: Sendable {
    let connection: String
    let password: String?
    package var connectSeconds = 5
    package var statementMilliseconds = 30_000

    /// These settings with a statement timeout of 30 minutes, such as for building an index of all events.
    var patient: PostgreSQLSettings {
        var settings = self
        settings.statementMilliseconds = 1_800_000
        return settings
    }

    /// `connection` is a libpq connection string; libpq reads its own password and service files. `passwordFile`
    /// contains only the password; a final line break is ignored.
    package init(_ connection: String, passwordFile: String? = nil) throws(GatewayError) {
        self.connection = connection
        guard Self.isReadable(connection) else {
            // libpq's message may quote the string, including a password.
            throw GatewayError(
                .invalid,
                "the database's address cannot be read; write postgresql://user@host:port/database, or libpq's "
                    + "keywords such as \"host=… dbname=…\"")
        }
        guard let passwordFile else {
            password = nil
            return
        }
        guard let text = try? String(contentsOfFile: passwordFile, encoding: .utf8) else {
            throw GatewayError(.dataDirectory, "cannot read the database's password in \(passwordFile)")
        }
        password = text.hasSuffix("\n") ? String(text.dropLast()) : text
    }

    package init(_ address: DatabaseAddress) throws(GatewayError) {
        try self.init(address.text, passwordFile: address.passwordFile)
    }

    private static func isReadable(_ connection: String) -> Bool {
        // libpq's errors quote the host and the port. libpq ends a password at the first `@` before a `/`. If a
        // password has an unescaped `@` or `/`, libpq reads a part of the password as the host or the port.
        if let start = connection.range(of: "://")?.upperBound {
            var rest = connection.unicodeScalars[start...]
            if let end = rest.firstIndex(where: { $0 == "@" || $0 == "/" }), rest[end] == "@" {
                rest = rest[rest.index(after: end)...].prefix { $0 != "?" }
            }
            if rest.contains("@") { return false }
        }
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(connection, &message) else {
            PQfreemem(message)
            return false
        }
        PQconninfoFree(options)
        return true
    }

    /// The connection string overrides the defaults before it, but not the required settings after it.
    var words: [(String, String)] {
        [
            ("connect_timeout", String(connectSeconds)),
            ("tcp_user_timeout", "10000"),
            ("keepalives_idle", "10"), ("keepalives_interval", "5"), ("keepalives_count", "3"),
            ("fallback_application_name", "countersign"),
            ("dbname", connection),
        ] + (password.map { [("password", $0)] } ?? []) + [
            ("target_session_attrs", "read-write"), ("client_encoding", "UTF8"),
        ]
    }

    var sessionScript: String {
        """
        SET search_path = countersign; SET statement_timeout = \(statementMilliseconds);
        SET idle_in_transaction_session_timeout = 20000; SET lock_timeout = \(statementMilliseconds);
        SET TIME ZONE 'UTC'; SET default_transaction_isolation = 'read committed';
        SET jit = off; SET extra_float_digits = 1; SET bytea_output = 'hex'; SET standard_conforming_strings = on;
        SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
        """
    }
}
