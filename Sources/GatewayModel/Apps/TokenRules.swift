internal import CountersignCore

/// How the gateway's token service treats an app's token families.
public struct TokenRules: Sendable, Equatable {
    /// What ``accessSeconds`` may be.
    public static let accessRange = 1...86_400
    /// What ``refreshSeconds`` may be.
    public static let refreshRange = 1...31_536_000
    /// What ``reuseSeconds`` may be.
    public static let reuseRange = 0...60
    /// What ``absoluteSeconds`` may be: up to ten years.
    public static let absoluteRange = 1...315_360_000

    /// Whether devices may register themselves at `/api/register`, without authentication.
    public var allowsRegistration = false
    /// How long an access token lives, in seconds.
    public var accessSeconds = 3_600
    /// How long a token family lives without being used, in seconds.
    public var refreshSeconds = 30 * 86_400
    /// How long after its exchange a refresh token still gets the one that took its place, in seconds.
    public var reuseSeconds = 60
    /// How long a token family lives however much it is used, in seconds.
    public var absoluteSeconds = 90 * 86_400

    /// No registration; an hour, thirty days, a minute, ninety days.
    public init() {}

    /// When a family's absolute lifetime ends, in the unit of `start`: milliseconds since 1970.
    package func end(of start: Int64) -> Int64 { start + Milliseconds(seconds: absoluteSeconds).count }

    /// When a token family is over that is not used again, in milliseconds since 1970.
    package func expiry(of start: Int64, usedAt now: Int64) -> Int64 {
        min(now + Milliseconds(seconds: refreshSeconds).count, end(of: start))
    }
}

extension TokenRules: AppSetting {
    package static let settingName = "token_rules"
    package static let action = "tokens.rules"

    package static func standard(for appID: String) -> TokenRules { TokenRules() }

    package static let fields: [JSONField<TokenRules>] = [
        JSONField(
            "registration", shown: .choice(["open", "closed"]),
            taken: .must("registration", .choice(["open", "closed"])),
            get: { .string($0.allowsRegistration ? "open" : "closed") },
            set: { $0.allowsRegistration = $1 == "open" }),
        .integer("access_seconds", \.accessSeconds, accessRange, isRequired: true),
        .integer("refresh_seconds", \.refreshSeconds, refreshRange, isRequired: true),
        .integer("reuse_seconds", \.reuseSeconds, reuseRange, isRequired: true),
        .integer("absolute_seconds", \.absoluteSeconds, absoluteRange),
    ]
}
