internal import CountersignLocations

/// The settings of `BGGeo`.
///
/// In the closure of `ready` and `setConfig` they take effect together, at its end; those of `BGGeo.config` at once, one by
/// one.
public final class Config {
    private let settings: Settings

    init(_ settings: Settings) {
        self.settings = settings
        http = HttpConfig(settings)
        authorization = AuthorizationConfig(settings)
        persistence = PersistenceConfig(settings)
    }

    /// Where records go, and when.
    public var http: HttpConfig { didSet { http.move(to: settings) } }
    /// Under which token.
    public var authorization: AuthorizationConfig { didSet { authorization.move(to: settings) } }
    /// What is stored, and for how long.
    public var persistence: PersistenceConfig { didSet { persistence.move(to: settings) } }

    /// Changes settings together: what cannot work changes nothing of it.
    ///
    /// - Parameter change: Sets what changes.
    public func edit(_ change: (Config) -> Void) {
        let draft = Settings(settings.configuration)
        change(Config(draft))
        settings.change { $0 = draft.configuration }
    }

    /// Puts the defaults in place of all settings. Tokens stay: `BGGeo.forgetTokens()` forgets them.
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
