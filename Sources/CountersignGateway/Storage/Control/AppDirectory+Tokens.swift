internal import CountersignCore
internal import CountersignSQLite

/// What operators set for the token service. A running gateway sees a change within a second.
extension AppDirectory {
    /// How an app's sessions are treated.
    ///
    /// - Throws: `notFound`, `storage`.
    public func tokenRules(of appID: String) throws(GatewayError) -> TokenRules {
        try allTokenRules()[try app(id: appID).id] ?? TokenRules()
    }

    /// Sets how an app's sessions are treated. Tokens that exist keep the lifetime that they were issued with; a shorter
    /// absolute lifetime holds for sessions that exist too.
    ///
    /// - Throws: `invalid` for a time out of its range, `notFound`, `storage`.
    public func setTokenRules(_ rules: TokenRules, for appID: String) throws(GatewayError) {
        let app = try app(id: appID)
        for (name, value, range) in [
            ("an access token's lifetime", rules.accessSeconds, TokenRules.accessRange),
            ("an unused session's lifetime", rules.refreshSeconds, TokenRules.refreshRange),
            ("the reuse window", rules.reuseSeconds, TokenRules.reuseRange),
            ("a session's absolute lifetime", rules.absoluteSeconds, TokenRules.absoluteRange),
        ] where !range.contains(value) {
            throw GatewayError(
                .invalid, "\(name) must be \(range.lowerBound) to \(range.upperBound) seconds, not \(value)")
        }
        let before = try tokenRules(of: app.id)
        try write {
            try audit(
                $0, "tokens.rules", app.id, app: app.id, before: before.json, after: rules.json)
            try $0.run(
                "INSERT OR REPLACE INTO token_rules VALUES (?, ?, ?, ?, ?, ?)", .text(app.id),
                .integer(rules.allowsRegistration ? 1 : 0), .integer(Int64(rules.accessSeconds)),
                .integer(Int64(rules.refreshSeconds)), .integer(Int64(rules.reuseSeconds)),
                .integer(Int64(rules.absoluteSeconds)))
        }
    }

    /// The rules of all apps that have some of their own, by id.
    func allTokenRules() throws(GatewayError) -> [String: TokenRules] {
        let rows = try read { sqlite in
            try sqlite.all(
                """
                SELECT app_id, allows_registration, access_seconds, refresh_seconds, reuse_seconds,
                    absolute_seconds
                FROM token_rules
                """
            ) { row in
                var rules = TokenRules()
                rules.allowsRegistration = row.int(1) != 0
                rules.accessSeconds = row.int(2)
                rules.refreshSeconds = row.int(3)
                rules.reuseSeconds = row.int(4)
                rules.absoluteSeconds = row.int(5)
                return (row.text(0), rules)
            }
        }
        return Dictionary(uniqueKeysWithValues: rows)
    }
}
