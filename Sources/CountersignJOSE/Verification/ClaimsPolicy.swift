/// What one app asks of its tokens.
public struct ClaimsPolicy: Sendable {
    /// The algorithms that the app allows; names are compared byte by byte.
    public var algorithms: [JWSAlgorithm]
    /// How far clocks may differ, in seconds, 0 to 300; a verifier takes the nearer bound for other values.
    public var leeway: Double
    /// The longest life from `iat` to `exp`, in seconds; nil for no limit. Of a token without `iat` only what
    /// is left of its life can be judged. Above 24 hours there is a warning in any case.
    public var maximumLifetime: Double?
    /// What `aud` must name if it is present; nil: not checked.
    public var audience: String?
    /// What `iss` must be if it is present; nil: not checked.
    public var issuer: String?
    /// Whether a token without `aud` is refused; only looked at where there is an ``audience``.
    public var requiresAudience: Bool
    /// Whether a token without `iss` is refused; only looked at where there is an ``issuer``.
    public var requiresIssuer: Bool
    /// Whether a token without `typ` is refused instead of noted.
    public var requiresType: Bool
    /// What `typ` must be where it is there, in lower case: a token of one kind is never taken for another (RFC 8725,
    /// section 3.11).
    package var type: StaticString = "jwt"

    /// A policy; by default RS256 only, 30 s leeway, nothing else asked.
    ///
    /// - Parameters:
    ///   - algorithms: The allow-list.
    ///   - leeway: 0 to 300.
    ///   - maximumLifetime: Nil for no limit.
    ///   - audience: Nil: `aud` is not checked.
    ///   - issuer: Nil: `iss` is not checked.
    ///   - requiresAudience: Whether `aud` must be there.
    ///   - requiresIssuer: Whether `iss` must be there.
    ///   - requiresType: Whether `typ` must be there.
    public init(
        algorithms: [JWSAlgorithm] = [.rs256], leeway: Double = 30,
        maximumLifetime: Double? = nil, audience: String? = nil, issuer: String? = nil,
        requiresAudience: Bool = false, requiresIssuer: Bool = false, requiresType: Bool = false
    ) {
        self.algorithms = algorithms
        self.leeway = leeway
        self.maximumLifetime = maximumLifetime
        self.audience = audience
        self.issuer = issuer
        self.requiresAudience = requiresAudience
        self.requiresIssuer = requiresIssuer
        self.requiresType = requiresType
    }

    /// The leeway as a verifier takes it.
    var boundedLeeway: Double { leeway.isNaN ? 0 : min(max(leeway, 0), 300) }
}
