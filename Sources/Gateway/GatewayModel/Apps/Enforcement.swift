internal import CountersignCore

/// How strictly an app's tokens are enforced.
public enum Enforcement: String, Sendable, CaseIterable {
    /// Tokens are not verified. The default.
    case disabled
    /// Requests of identified users are verified and reported, and never rejected.
    case optional
    /// Requests of identified users are verified, and rejected when the token is not valid.
    case required

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public init?(rawValue: String) {
        guard let found = Self.named(rawValue) else { return nil }
        self = found
    }
}
