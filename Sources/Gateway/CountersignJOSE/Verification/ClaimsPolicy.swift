/// An app's requirements for its tokens.
public struct ClaimsPolicy: Sendable {
    /// The allowed algorithms. Names are compared by their bytes.
    public var algorithms: [JWSAlgorithm]
    /// The allowed clock difference in seconds. A verifier limits the value to 0 to 300.
    public var leeway: Double
    /// The maximum lifetime from `iat` to `exp` in seconds; nil for no limit. For a token without `iat`, the
    /// remaining lifetime counts. A lifetime above 24 hours always causes a warning.
    public var maximumLifetime: Double?
    /// The value that `aud` must contain if it is present; nil does not check it.
    public var audience: String?
    /// The required value of `iss` if it is present; nil does not check it.
    public var issuer: String?
    /// Whether a token without `aud` is rejected. Ignored without an ``audience``.
    public var requiresAudience: Bool
    /// Whether a token without `iss` is rejected. Ignored without an ``issuer``.
    public var requiresIssuer: Bool
    /// Whether a token without `typ` is rejected. Otherwise it causes a warning.
    public var requiresType: Bool
    /// The required value of `typ` in lower case, if it is present. Prevents the use of a token of another
    /// kind (RFC 8725, section 3.11).
    package var type: StaticString = "jwt"

    /// Creates a policy. By default only RS256 is allowed, with 30 s leeway and no other requirements.
    ///
    /// - Parameters:
    ///   - algorithms: The allow-list.
    ///   - leeway: 0 to 300.
    ///   - maximumLifetime: Nil for no limit.
    ///   - audience: The expected audience; nil does not check `aud`.
    ///   - issuer: The expected issuer; nil does not check `iss`.
    ///   - requiresAudience: Whether `aud` is required.
    ///   - requiresIssuer: Whether `iss` is required.
    ///   - requiresType: Whether `typ` is required.
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

    /// The leeway within its limits.
    var boundedLeeway: Double { leeway.isNaN ? 0 : min(max(leeway, 0), 300) }
}
