internal import CountersignCore
internal import CountersignLocations

/// An access token, and how to get the next one.
public final class AuthorizationConfig {
    private var settings: Settings

    /// Makes a configuration without a token.
    public convenience init() {
        self.init(Settings())
    }

    init(_ settings: Settings) {
        self.settings = settings
    }

    var value: AuthorizationConfiguration {
        get { settings.configuration.authorization }
        set { settings.change { $0.authorization = newValue } }
    }

    /// Keeps what it says, in another place from now on.
    func move(to settings: Settings) {
        let value = value
        self.settings = settings
        self.value = value
    }

    /// How the token is sent: `"JWT"` puts `Bearer` before it, `"SAS"` nothing. Nil counts as JWT.
    public var strategy: AuthorizationStrategy? {
        get { AuthorizationStrategy(rawValue: value.strategy.rawValue) }
        set { value.strategy = newValue == .sas ? .sas : .jwt }
    }

    /// The token that goes with each upload.
    public var accessToken: String? {
        get { value.accessToken }
        set { value.accessToken = newValue }
    }

    /// What the token is refreshed with.
    public var refreshToken: String? {
        get { value.refreshToken }
        set { value.refreshToken = newValue }
    }

    /// Where to get the next token, with `POST`.
    public var refreshUrl: String? {
        get { value.refreshUrl }
        set { value.refreshUrl = newValue }
    }

    /// The fields of that request; `{refreshToken}` and `{accessToken}` are replaced wherever they stand.
    public var refreshPayload: [String: Any]? {
        get { value.refreshPayload.map(plain) }
        set { value.refreshPayload = newValue.map(json) }
    }

    /// The header fields of that request, with the same replacements. Nil: `Authorization` with the present access token.
    /// Empty: none. A content type of `application/json` sends the payload as JSON.
    public var refreshHeaders: [String: String]? {
        get { value.refreshHeaders }
        set { value.refreshHeaders = newValue }
    }

    /// When the token expires, in seconds since 1970; below 1,000,000,000 in seconds from now, and from 100,000,000,000 on
    /// in milliseconds. -1: not known, so that only a 401 leads to a refresh.
    public var expires: Double {
        get { value.expires }
        set { value.expires = newValue }
    }

    /// Statuses beside 401 that mean that the token was refused. Not Transistorsoft's.
    public var refreshStatuses: Set<Int> {
        get { value.refreshStatuses }
        set { value.refreshStatuses = newValue }
    }

    /// Where in an answer `accessToken`, `refreshToken` and `expires` stand, such as `$.data.token`; what is not listed is
    /// found by its name. Not Transistorsoft's.
    public var responseMapping: [String: String] {
        get { value.responseMapping }
        set { value.responseMapping = newValue }
    }

    /// Takes the members that are named as the properties are; all others stay as they are.
    ///
    /// - Parameter values: A null empties a property. A value of another type is passed over.
    public func update(with values: [String: Any]) {
        // All at once: a token may be good with the strategy that comes with it alone.
        let draft = AuthorizationConfig()
        draft.value = value
        draft.take(values)
        value = draft.value
    }

    private func take(_ values: [String: Any]) {
        for (name, any) in values {
            guard let given = JSONValue(any: any) else { continue }
            let text: String? = if case .string(let text) = given { text } else { nil }
            let isNull = given == .null
            switch name {
            case "strategy": if let text { strategy = AuthorizationStrategy(rawValue: text) ?? strategy }
            case "accessToken": if text != nil || isNull { accessToken = text }
            case "refreshToken": if text != nil || isNull { refreshToken = text }
            case "refreshUrl": if text != nil || isNull { refreshUrl = text }
            case "expires":
                switch given {
                case .integer(let number): expires = Double(number)
                case .number(let number): expires = number
                default: break
                }
            case "refreshPayload":
                if case .object(let members) = given {
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

/// How an access token is sent.
public enum AuthorizationStrategy: String, Hashable, Sendable, CaseIterable, ExpressibleByStringLiteral {
    /// `Authorization: Bearer <token>`.
    case jwt = "JWT"
    /// `Authorization: <token>`.
    case sas = "SAS"

    /// A word in any case; nil for one that names no strategy.
    public init?(rawValue: String) {
        switch rawValue.uppercased() {
        case "JWT": self = .jwt
        case "SAS": self = .sas
        default: return nil
        }
    }

    /// A word in any case. One that names no strategy counts as `JWT`, the default.
    public init(stringLiteral value: String) {
        self = AuthorizationStrategy(rawValue: value) ?? .jwt
    }
}
