internal import CountersignLocations

/// The settings of `BGGeo`.
///
/// Changes in the closure of `ready` or `setConfig` take effect together when it returns. Changes of `BGGeo.config`
/// take effect one by one, at once.
public final class Config {
    private let settings: Settings

    init(_ settings: Settings) {
        self.settings = settings
        http = HttpConfig(settings)
        authorization = AuthorizationConfig(settings)
        persistence = PersistenceConfig(settings)
    }

    /// The settings of uploads.
    public var http: HttpConfig { didSet { http.move(to: settings) } }
    /// The settings of the access token.
    public var authorization: AuthorizationConfig { didSet { authorization.move(to: settings) } }
    /// The settings of storage.
    public var persistence: PersistenceConfig { didSet { persistence.move(to: settings) } }

    /// Changes settings together. If one is invalid, nothing changes.
    ///
    /// - Parameter change: Changes the settings.
    public func edit(_ change: (Config) -> Void) {
        let draft = Settings(settings.configuration)
        change(Config(draft))
        settings.change { $0 = draft.configuration }
    }

    /// Resets all settings to their defaults. Tokens and `expires` stay; `BGGeo.forgetTokens()` deletes the tokens.
    public func reset() {
        settings.change { configuration in
            let authorization = configuration.authorization
            configuration.http = .init()
            configuration.persistence = .init()
            configuration.authorization = .init()
            configuration.authorization.accessToken = authorization.accessToken
            configuration.authorization.refreshToken = authorization.refreshToken
            configuration.authorization.expires = authorization.expires
        }
    }
}
