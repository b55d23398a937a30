package import CountersignCore
public import CountersignJOSE
internal import CountersignSQLite
public import GatewayModel

extension AppDirectory {
    /// The app's setting, or its default if it is not set.
    package func setting<Setting: AppSetting>(
        _ type: Setting.Type = Setting.self, of appID: String
    ) throws(GatewayError) -> Setting {
        try settingIfSet(of: appID) ?? .standard(for: appID)
    }

    package func settingIfSet<Setting: AppSetting>(
        _ type: Setting.Type = Setting.self, of appID: String
    ) throws(GatewayError) -> Setting? {
        try read { connection in
            try Self.checkApp(appID, connection)
            return try SettingTable(connection: connection).one(of: appID)
        }
    }

    package func settings<Setting: AppSetting>(
        _ type: Setting.Type = Setting.self
    ) throws(GatewayError) -> BytewiseDictionary<Setting> {
        try read { try SettingTable(connection: $0).all() }
    }

    /// Nil deletes the setting. Adds no audit entry if nothing changes. `check` runs within the transaction.
    package func set<Setting: AppSetting>(
        _ setting: Setting?, for appID: String, check: (any SQLConnection) throws -> Void = { _ in }
    ) throws(GatewayError) {
        try setting?.checkFields()
        try write { connection in
            try Self.checkApp(appID, connection)
            try check(connection)
            let table = SettingTable(connection: connection)
            let before = try table.one(Setting.self, of: appID)
            let known = before ?? (Setting.mayBeMissing ? nil : .standard(for: appID))
            if known?.kept == setting?.kept { return }
            try table.put(setting, of: appID)
            try audit(
                connection, setting == nil ? Setting.settingName + ".remove" : Setting.action, appID,
                app: appID,
                before: known?.audited, after: setting?.audited)
        }
    }

    /// The apps that use the token service, and the apps that use the Bloomreach dialect.
    package func appsWithFeatures() throws(GatewayError) -> (
        tokenService: BytewiseSet, bloomreach: BytewiseSet
    ) {
        try read { connection in
            func apps(with setting: String, _ tables: String...) throws -> BytewiseSet {
                let sql =
                    ["SELECT app_id FROM app_setting WHERE name = ?1"]
                    + tables.map { "SELECT app_id FROM \($0)" }
                return BytewiseSet(
                    try connection.all(sql.joined(separator: " UNION "), [.text(setting)]) { $0.text(0) })
            }
            return (
                try apps(with: TokenRules.settingName, "oauth_client"),
                try apps(
                    with: ProjectSettings.settingName, "customer_token_key", "project_item", "inbox_message")
            )
        }
    }

    // MARK: Setters for each setting

    /// Sets the rules for the claims of an app's tokens.
    ///
    /// - Throws: `invalid` for a value out of range, such as a leeway that is not 0 to 300 seconds. `invalid` also if
    ///   no algorithm or `typ` is allowed, or a required claim has no expected value. `notFound`, `storage`.
    public func setPolicy(_ policy: ClaimsPolicy, for appID: String) throws(GatewayError) {
        try set(policy, for: appID)
    }

    /// The allowed origins of an app and the retention of its events.
    ///
    /// - Throws: `notFound`, `storage`.
    public func rules(of appID: String) throws(GatewayError) -> AppRules { try setting(of: appID) }

    /// Sets the allowed origins of an app and the retention of its events.
    ///
    /// - Throws: `invalid` for a new origin that no browser sends, for days outside 1 to 36,500, or for bytes outside
    ///   1 to 2^50. `notFound`, `storage`.
    public func setRules(_ rules: AppRules, of appID: String) throws(GatewayError) {
        try set(rules, for: appID) { connection in
            let known = try SettingTable(connection: connection).effective(AppRules.self, of: appID)
            try rules.checkOrigins(besides: known.origins)
        }
    }

    /// The token service's rules for an app.
    ///
    /// - Throws: `notFound`, `storage`.
    public func tokenRules(of appID: String) throws(GatewayError) -> TokenRules { try setting(of: appID) }

    /// Sets the token service's rules for an app. Issued access tokens keep their lifetime. A shorter absolute
    /// lifetime also applies to existing token families.
    ///
    /// - Throws: `invalid` for a time out of its range, `notFound`, `storage`.
    public func setTokenRules(_ rules: TokenRules, for appID: String) throws(GatewayError) {
        try set(rules, for: appID)
    }

    /// Sets the only source from which an app's keys are loaded, in addition to its own keys.
    ///
    /// - Parameters:
    ///   - url: An `https` URL without user, password and fragment, of a JWK Set or of an OpenID provider's
    ///     metadata; nil removes all sources.
    ///   - allowsPrivateAddresses: Whether the URL may resolve to a private network or to this machine.
    ///   - appID: The app.
    /// - Throws: `invalid`, `notFound`, `storage`.
    public func setKeySource(
        url: String?, allowsPrivateAddresses: Bool = false, of appID: String
    ) throws(GatewayError) {
        let source = url.map { KeySource(url: $0, allowsPrivateAddresses: allowsPrivateAddresses) }
        try setKeySources(KeySources(source.map { [$0] } ?? []), of: appID)
    }

    /// Replaces an app's key sources, and deletes the stored key sets of removed sources.
    package func setKeySources(_ sources: KeySources, of appID: String) throws(GatewayError) {
        try set(sources.all.isEmpty ? nil : sources, for: appID) { connection in
            let before = try SettingTable(connection: connection).one(KeySources.self, of: appID)
            for old in before?.all ?? [] where !sources.all.contains(where: { $0.url == old.url }) {
                try connection.run(
                    "DELETE FROM published_key_set WHERE app_id = ?1 AND url = ?2", .text(appID),
                    .text(old.url))
            }
        }
    }

    /// A nil `url` removes the webhook and its queued alerts. Returns a new secret, if one was made; shown only once.
    package func setAlertWebhook(
        url: String?, secret: String?, allowsPrivateAddresses: Bool = false, for appID: String
    ) throws(GatewayError) -> String? {
        guard let url else {
            try set(nil as PushWebhook?, for: appID) { connection in
                try connection.run("DELETE FROM alert WHERE app_id = ?", .text(appID))
            }
            return nil
        }
        let before = try settingIfSet(PushWebhook.self, of: appID)
        let made = secret == nil && before == nil ? PushWebhook.newSecret() : nil
        var webhook = PushWebhook(
            url: url, secret: before?.secret ?? [], allowsPrivateAddresses: allowsPrivateAddresses)
        if let given = secret ?? made {
            guard let key = WebhookSignature.key(given) else {
                throw GatewayError(.invalid, "secret must be whsec_ and the base64 of 24 to 64 bytes")
            }
            webhook.secret = key
        }
        try set(webhook, for: appID)
        return made
    }

    /// Sets how Bloomreach clients reach an app. Throws `conflict` if the token is the id or token of another app.
    package func setProject(_ settings: ProjectSettings, for appID: String) throws(GatewayError) {
        try set(settings, for: appID) { connection in
            try Self.check(settings.token, of: appID, connection)
        }
    }

    private static func check(_ token: String, of appID: String, _ connection: any SQLConnection) throws {
        // The default token is the app's id, which may contain `_`.
        guard token == appID || (isWord(token) && !token.contains("_") && GivenName.isUsable(token)) else {
            throw GatewayError(
                .invalid, "a project token must have 1 to 64 letters, digits and -, and must not begin with -"
            )
        }
        let settings = try SettingTable(connection: connection).all(ProjectSettings.self)
        let isTaken = try appIDs(connection).contains {
            $0 != appID && ($0 == token || settings[$0]?.token == token)
        }
        guard !isTaken else {
            throw GatewayError(
                .conflict, "another app has the id or the project token \(token); choose another")
        }
    }

    static func isWord(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isASCIIAlphanumeric(or: "-_") }
    }
}
