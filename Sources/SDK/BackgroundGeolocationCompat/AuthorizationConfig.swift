internal import CountersignCore
internal import CountersignDelivery
internal import CountersignLocations

/// An access token and the settings of its refresh.
public final class AuthorizationConfig: SettingsPart {
    static var path: WritableKeyPath<LocationConfiguration, AuthorizationConfiguration> { \.authorization }
    var settings: Settings

    /// Creates a configuration without a token.
    public convenience init() {
        self.init(Settings())
    }

    init(_ settings: Settings) {
        self.settings = settings
    }

    /// How the token is sent: `"JWT"` puts `Bearer` before it, `"SAS"` nothing. Nil counts as JWT.
    public var strategy: AuthorizationStrategy? {
        get { AuthorizationStrategy(rawValue: value.strategy.rawValue) }
        set { value.strategy = newValue == .sas ? .sas : .jwt }
    }

    /// The token sent with each upload.
    public var accessToken: String? {
        get { value.accessToken }
        set { value.accessToken = newValue }
    }

    /// The refresh token.
    public var refreshToken: String? {
        get { value.refreshToken }
        set { value.refreshToken = newValue }
    }

    /// The URL for token refreshes, requested with `POST`.
    public var refreshUrl: String? {
        get { value.refreshUrl }
        set { value.refreshUrl = newValue }
    }

    /// The fields of a refresh request. `{refreshToken}` and `{accessToken}` are replaced in their values.
    public var refreshPayload: [String: Any]? {
        get { value.refreshPayload.map(plain) }
        set { value.refreshPayload = newValue.map(json) }
    }

    /// The header fields of a refresh request, with the placeholders of `refreshPayload`. Nil for `Authorization` with
    /// the current access token. With the content type `application/json` the payload is sent as JSON.
    public var refreshHeaders: [String: String]? {
        get { value.refreshHeaders }
        set { value.refreshHeaders = newValue }
    }

    /// The expiry of the token in seconds since 1970. Numbers below 1,000,000,000 are seconds from now, numbers from
    /// 100,000,000,000 on milliseconds since 1970. -1 if unknown: only a rejected token is refreshed.
    public var expires: Double {
        get { value.expires }
        set { value.expires = newValue }
    }

    /// Statuses in addition to 401 that reject the token. An addition to Transistorsoft's API.
    public var refreshStatuses: Set<Int> {
        get { value.refreshStatuses }
        set { value.refreshStatuses = newValue }
    }

    /// The paths of `accessToken`, `refreshToken` and `expires` in a response, such as `$.data.token`. Members without
    /// a path are found by name. An addition to Transistorsoft's API.
    public var responseMapping: [String: String] {
        get { value.responseMapping }
        set { value.responseMapping = newValue }
    }

    /// Sets the vendor's properties that have a member of the same name. Merges `refreshPayload` and `refreshHeaders`.
    ///
    /// - Parameter values: Null clears a property, except `strategy` and `expires`. A value of another type is ignored.
    public func update(with values: [String: Any]) {
        // Apply all together, because a token may be valid only with its new strategy.
        let draft = AuthorizationConfig()
        draft.value = value
        draft.apply(values)
        value = draft.value
    }

    private func apply(_ values: [String: Any]) {
        for (name, any) in values {
            guard let given = JSONValue(any: any) else { continue }
            let text = given.string
            let isNull = given == .null
            switch name {
            case "strategy": if let text { strategy = AuthorizationStrategy(rawValue: text) ?? strategy }
            case "accessToken": if text != nil || isNull { accessToken = text }
            case "refreshToken": if text != nil || isNull { refreshToken = text }
            case "refreshUrl": if text != nil || isNull { refreshUrl = text }
            case "expires": expires = given.double ?? expires
            case "refreshPayload":
                if let members = given.object {
                    value.refreshPayload = (value.refreshPayload ?? [:]).merging(members) { _, new in new }
                } else if isNull {
                    refreshPayload = nil
                }
            case "refreshHeaders":
                if let fields = (any as? [String: Any])?.compactMapValues(headerText) {
                    refreshHeaders =
                        fields.isEmpty ? [:] : (refreshHeaders ?? [:]).merging(fields) { _, new in new }
                } else if isNull {
                    refreshHeaders = nil
                }
            default: break
            }
        }
    }
}

/// The form of an access token in requests.
public enum AuthorizationStrategy: String, Hashable, Sendable, CaseIterable, ExpressibleByStringLiteral {
    /// `Authorization: Bearer <token>`.
    case jwt = "JWT"
    /// `Authorization: <token>`.
    case sas = "SAS"

    /// Ignores case. Returns nil for an unknown strategy.
    public init?(rawValue: String) {
        switch rawValue.uppercased() {
        case "JWT": self = .jwt
        case "SAS": self = .sas
        default: return nil
        }
    }

    /// Ignores case. An unknown strategy counts as `JWT`, the default.
    public init(stringLiteral value: String) {
        self = AuthorizationStrategy(rawValue: value) ?? .jwt
    }
}
