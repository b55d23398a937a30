internal import CountersignCore

/// The PostgreSQL database that gateways of a cluster share. The description omits the password.
package struct DatabaseAddress: Sendable, Equatable, CustomStringConvertible {
    /// A libpq connection string: URI, or keywords and values such as `host=db dbname=countersign`.
    package let text: String
    /// The path of a file with the password; nil leaves the password to `text` and libpq's password file.
    package var passwordFile: String?
    /// The path of the key file that seals the secrets in the database. All gateways need the same key.
    package var tokenKeyFile = ""
    /// For tests: leases and sessions expire by the times that callers pass instead of the database's clock.
    package var takesGivenTime = false

    /// Returns nil unless `text` is a URI of PostgreSQL, or keywords and values.
    package init?(_ text: String, passwordFile: String? = nil) {
        let isURL = Self.schemes.contains { text.hasPrefix($0) }
        guard isURL || (!text.contains("://") && text.contains("=")) else { return nil }
        self.text = text
        self.passwordFile = passwordFile
    }

    package static func tokenKeyFile(in dataDirectory: String) -> String { dataDirectory + "/token-key" }

    private static let schemes = ["postgresql://", "postgres://"]

    package var description: String {
        text.contains("://") ? Self.shown(url: text) : Self.shown(keywords: text)
    }

    private static func shown(url: String) -> String {
        var shown = url
        let start = shown.range(of: "://")?.upperBound ?? shown.startIndex
        // Searches for the last `@`, because a password may contain an unescaped `/`, `?` or `@`.
        if let at = shown[start...].lastIndex(of: "@") {
            let user = shown[start..<at].unicodeScalars.prefix { $0 != ":" }
            shown = shown[..<start] + String(user) + shown[at...]
        }
        let parts = shown.split(separator: "?", maxSplits: 1)
        guard parts.count > 1 else { return String(parts[0]) }
        let query = parts[1].split(separator: "&").filter { !isSecret(name($0)) }
        return query.isEmpty ? String(parts[0]) : parts[0] + "?" + query.joined(separator: "&")
    }

    /// Shows settings before the first quote or backslash, because a quoted value may contain anything.
    private static func shown(keywords: String) -> String {
        Substring(keywords.unicodeScalars.prefix { $0 != "'" && $0 != "\\" }).split { $0.isWhitespace }
            .joined(separator: " ").replacing(" =", with: "=").replacing("= ", with: "=")
            .split(separator: " ").filter { $0.contains("=") && !isSecret(name($0)) }.joined(separator: " ")
    }

    private static func name(_ setting: Substring) -> Substring {
        Substring(setting.unicodeScalars.prefix { $0 != "=" })
    }

    /// Whether a setting is a secret, such as `password` or `scram_client_key`. An encoded name may be any name.
    private static func isSecret(_ name: Substring) -> Bool {
        ["password", "secret", "scram", "%"].contains { name.lowercased().contains($0) }
    }
}
