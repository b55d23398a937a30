package import CountersignCore
public import CountersignJOSE
internal import CountersignSQLite
public import GatewayModel

/// What operators set for apps. A running gateway sees a change within a second.
extension AppDirectory {
    /// What is set for an app, or what is standard. Throws `notFound`, `storage`.
    package func setting<Setting: AppSetting>(
        _ type: Setting.Type = Setting.self, of appID: String
    ) throws(GatewayError) -> Setting {
        try settingIfSet(of: appID) ?? .standard(for: appID)
    }

    /// What is set for an app; nil when nothing is.
    package func settingIfSet<Setting: AppSetting>(
        _ type: Setting.Type = Setting.self, of appID: String
    ) throws(GatewayError) -> Setting? {
        try read { connection in
            try Self.checkApp(appID, connection)
            return try SettingTable(connection: connection).one(of: appID)
        }
    }

    /// What is set for any app, by the app's id.
    package func settings<Setting: AppSetting>(
        _ type: Setting.Type = Setting.self
    ) throws(GatewayError) -> BytewiseDictionary<Setting> {
        try read { try SettingTable(connection: $0).all() }
    }

    /// Sets something for an app; nil forgets it. What is set already is not noted again. Throws `invalid`, `notFound`,
    /// `storage`, and what `check` throws in the transaction.
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

    // MARK: One by one

    /// Sets what an app's tokens must look like.
    ///
    /// - Throws: `invalid` when the leeway is not 0 to 300 seconds, no algorithm is allowed or a claim is required that
    ///   has no value to compare with, `notFound`, `storage`.
    public func setPolicy(_ policy: ClaimsPolicy, for appID: String) throws(GatewayError) {
        try set(policy, for: appID)
    }

    /// Web pages that may call an app, and how long its events are kept.
    ///
    /// - Throws: `notFound`, `storage`.
    public func rules(of appID: String) throws(GatewayError) -> AppRules { try setting(of: appID) }

    /// Sets the rules of an app.
    ///
    /// - Throws: `invalid` when no browser sends a new origin or a number is not positive, `notFound`, `storage`.
    public func setRules(_ rules: AppRules, of appID: String) throws(GatewayError) {
        try set(rules, for: appID) { connection in
            let known = try SettingTable(connection: connection).effective(AppRules.self, of: appID)
            try rules.checkOrigins(besides: known.origins)
        }
    }

    /// How an app's sessions are treated.
    ///
    /// - Throws: `notFound`, `storage`.
    public func tokenRules(of appID: String) throws(GatewayError) -> TokenRules { try setting(of: appID) }

    /// Sets how an app's sessions are treated. Tokens that exist keep the lifetime that they were issued with; a shorter
    /// absolute lifetime holds for sessions that exist too.
    ///
    /// - Throws: `invalid` for a time out of its range, `notFound`, `storage`.
    public func setTokenRules(_ rules: TokenRules, for appID: String) throws(GatewayError) {
        try set(rules, for: appID)
    }

    /// Follows a JWK Set that somebody else publishes: its keys verify beside the app's own three.
    ///
    /// - Parameters:
    ///   - url: An `https` URL without user, password and fragment; nil follows none.
    ///   - allowsPrivateAddresses: Whether it may be on a private network or on this machine.
    ///   - appID: The app.
    /// - Throws: `invalid`, `notFound`, `storage`.
    public func setKeySource(
        url: String?, allowsPrivateAddresses: Bool = false, of appID: String
    ) throws(GatewayError) {
        try set(
            url.map { KeySource(url: $0, allowsPrivateAddresses: allowsPrivateAddresses) }, for: appID)
    }

    /// Sets where an app's alerts go. Without a webhook, those that wait are forgotten. Returns the secret, when one
    /// was made: it is not shown again. Throws `invalid`, `notFound`, `storage`.
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
            guard let key = StandardWebhook.key(given) else {
                throw GatewayError(.invalid, "secret must be whsec_ and the base64 of 24 to 64 bytes")
            }
            webhook.secret = key
        }
        try set(webhook, for: appID)
        return made
    }

    /// Sets how clients of the Bloomreach dialect reach an app. Throws `invalid`, `conflict` when another app has the
    /// token, `notFound`, `storage`.
    package func setProject(_ settings: ProjectSettings, for appID: String) throws(GatewayError) {
        try set(settings, for: appID) { connection in
            try Self.check(settings.token, of: appID, connection)
        }
    }

    private static func check(_ token: String, of appID: String, _ connection: any SQLConnection) throws {
        // An app's own id is its first token, which may have a `_`.
        guard token == appID || (isWord(token) && !token.contains("_") && GivenName.isUsable(token)) else {
            throw GatewayError(
                .invalid, "a project token must have 1 to 64 letters, digits and -, and must not begin with -"
            )
        }
        let settings = try SettingTable(connection: connection).all(ProjectSettings.self)
        let isTaken = try appIDs(connection).contains { $0 != appID && (settings[$0]?.token ?? $0) == token }
        guard !isTaken else {
            throw GatewayError(.conflict, "another app has the project token \(token); choose another")
        }
    }

    /// True for 1 to 64 letters, digits, `-` and `_`.
    static func isWord(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isASCIIAlphanumeric(or: "-_") }
    }
}
