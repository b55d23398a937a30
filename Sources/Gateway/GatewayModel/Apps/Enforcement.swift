internal import CountersignCore

/// How strictly an app enforces user tokens, which are sent with a write key. Other tokens are always enforced.
public enum Enforcement: String, Sendable, CaseIterable {
    /// Tokens of users are not verified. The default.
    case disabled
    /// Requests of identified users are verified and reported, and not rejected for a missing or invalid token.
    case optional
    /// Requests of identified users are verified, and rejected when the token is missing or invalid.
    case required

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public init?(rawValue: String) {
        guard let found = Self.named(rawValue) else { return nil }
        self = found
    }
}
