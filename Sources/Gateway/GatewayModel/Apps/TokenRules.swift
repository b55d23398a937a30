internal import CountersignCore

/// Settings of the token service for an app's token families.
public struct TokenRules: Sendable, Equatable {
    /// Valid values of ``accessSeconds``.
    public static let accessRange = 1...86_400
    /// Valid values of ``refreshSeconds``.
    public static let refreshRange = 1...31_536_000
    /// Valid values of ``reuseSeconds``.
    public static let reuseRange = 0...60
    /// Valid values of ``absoluteSeconds``: up to ten years.
    public static let absoluteRange = 1...315_360_000

    /// Whether devices may register themselves at `/api/register`, without authentication.
    public var allowsRegistration = false
    /// Lifetime of an access token, in seconds.
    public var accessSeconds = 3_600
    /// Lifetime of an unused token family, in seconds.
    public var refreshSeconds = 30 * 86_400
    /// Seconds after a rotation in which the old refresh token gets its successor again, if the successor is unused.
    public var reuseSeconds = 60
    /// Maximum lifetime of a token family, in seconds.
    public var absoluteSeconds = 90 * 86_400

    /// Creates the default rules, without registration and with the lifetimes above.
    public init() {}

    /// End of a family's maximum lifetime, in milliseconds since 1970.
    package func end(of start: Int64) -> Int64 { start + Milliseconds(seconds: absoluteSeconds).count }

    /// End of a family that is not used after `now`, in milliseconds since 1970.
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
