package import CountersignCore

/// An app's requirements for its tokens.
public struct ClaimsPolicy: Sendable {
    /// The allowed algorithms. Names are compared by their bytes.
    public var algorithms: [JWSAlgorithm]
    /// The allowed clock difference for `exp`, `nbf` and `iat` in seconds. A verifier limits the value to 0 to 300.
    public var leeway: Double
    /// The maximum lifetime from `iat` to `exp` in seconds; nil for no limit. For a token without `iat`, the
    /// remaining lifetime minus ``leeway`` counts. A lifetime above 24 hours always causes a warning.
    public var maximumLifetime: Double?
    /// The accepted audiences; empty does not check `aud`. If `aud` is present, it must contain an accepted audience.
    public var audiences: [String]
    /// The accepted issuers; empty does not check `iss`. If `iss` is present, it must be an accepted issuer.
    public var issuers: [String]
    /// Whether a token without `aud` is rejected. Ignored without ``audiences``.
    public var requiresAudience: Bool
    /// Whether a token without `iss` is rejected. Ignored without ``issuers``.
    public var requiresIssuer: Bool
    /// Whether a token without `typ` is rejected. If not, the missing `typ` causes a warning.
    public var requiresType: Bool
    /// The accepted values of `typ`. Prevents the use of tokens issued for another purpose (RFC 8725, section
    /// 3.11). Compared without ASCII case, with or without `application/`.
    public var types = ["JWT"]
    /// The claim that names the user: a member of the payload, such as `sub` or `https://example.com/uid`.
    public var userClaim = "sub"
    /// The claims that the gateway stores with each event sent with a valid token.
    public var keptClaims: [String] = []

    /// Creates a policy. By default only RS256 is allowed, with 30 s leeway and no other requirements.
    ///
    /// - Parameters:
    ///   - algorithms: The allow-list.
    ///   - leeway: 0 to 300.
    ///   - maximumLifetime: Nil for no limit.
    ///   - audiences: The accepted audiences; empty does not check `aud`.
    ///   - issuers: The accepted issuers; empty does not check `iss`.
    ///   - requiresAudience: Whether `aud` is required.
    ///   - requiresIssuer: Whether `iss` is required.
    ///   - requiresType: Whether `typ` is required.
    public init(
        algorithms: [JWSAlgorithm] = [.rs256], leeway: Double = 30,
        maximumLifetime: Double? = nil, audiences: [String] = [], issuers: [String] = [],
        requiresAudience: Bool = false, requiresIssuer: Bool = false, requiresType: Bool = false
    ) {
        self.algorithms = algorithms
        self.leeway = leeway
        self.maximumLifetime = maximumLifetime
        self.audiences = audiences
        self.issuers = issuers
        self.requiresAudience = requiresAudience
        self.requiresIssuer = requiresIssuer
        self.requiresType = requiresType
    }

    var boundedLeeway: Double { leeway.isNaN ? 0 : min(max(leeway, 0), 300) }

    /// The stored form of a number in ``keptClaims``: an integer if the number is whole; nil if it may be inexact.
    package static func kept(number value: JSONValue) -> JSONValue? {
        guard case .number(let number) = value else { return value }
        guard number.magnitude < 0x1p53 else { return nil }
        return Int64(exactly: number).map { .integer($0) } ?? value
    }
}
