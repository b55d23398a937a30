internal import CountersignSQLite
internal import Foundation

/// Web pages that may call an app, and how long its events are kept. A running gateway sees a change within a second.
extension AppDirectory {
    /// The rules of an app.
    ///
    /// - Throws: `notFound`, `storage`.
    public func rules(of appID: String) throws(GatewayError) -> AppRules {
        let app = try app(id: appID)
        return try allRules()[app.id] ?? AppRules()
    }

    /// Sets the rules of an app.
    ///
    /// - Throws: `invalid` when an origin is none or a number is not positive, `notFound`, `storage`.
    public func setRules(_ rules: AppRules, of appID: String) throws(GatewayError) {
        for origin in rules.origins where !Self.isOrigin(origin) {
            throw GatewayError(
                .invalid, "an origin is * or looks like https://shop.example or http://localhost:3000")
        }
        guard rules.retentionDays.map({ $0 > 0 }) ?? true, rules.retentionBytes.map({ $0 > 0 }) ?? true else {
            throw GatewayError(.invalid, "retention needs more than 0 days or bytes")
        }
        let before = try self.rules(of: appID)
        let app = try app(id: appID)
        try write { sqlite in
            try audit(sqlite, "app.rules", appID, app: appID, before: before.json, after: rules.json)
            try sqlite.run(
                """
                INSERT INTO app_rules VALUES (?1, ?2, ?3, ?4) ON CONFLICT (app_id) DO UPDATE
                SET origins = ?2, retention_days = ?3, retention_bytes = ?4
                """, .text(app.id), .text(rules.origins.joined(separator: " ")),
                rules.retentionDays.map { .integer(Int64($0)) } ?? .null,
                rules.retentionBytes.map { .integer(Int64($0)) } ?? .null)
        }
    }

    /// The rules of all apps that have some, by id.
    func allRules() throws(GatewayError) -> [String: AppRules] {
        let rows = try read { sqlite in
            try sqlite.all("SELECT app_id, origins, retention_days, retention_bytes FROM app_rules") { row in
                var rules = AppRules()
                rules.origins = row.text(1).split(separator: " ").map(String.init)
                rules.retentionDays = row.isNull(2) ? nil : row.int(2)
                rules.retentionBytes = row.isNull(3) ? nil : row.int(3)
                return (row.text(0), rules)
            }
        }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    /// RFC 6454, section 6.2: scheme, host and port, nothing else.
    private static func isOrigin(_ text: String) -> Bool {
        if text == "*" { return true }
        guard let url = URLComponents(string: text), url.scheme == "https" || url.scheme == "http",
            let host = url.host, !host.isEmpty, url.path.isEmpty, url.query == nil, url.fragment == nil,
            url.user == nil, text == text.lowercased(), !text.contains(" ")
        else { return false }
        return true
    }
}
