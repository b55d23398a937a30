internal import CountersignCore

/// The claims of an accepted token. Created only by ``TokenVerifier``.
public struct VerifiedClaims: Sendable {
    private let claims: Claims

    init(_ claims: Claims) {
        self.claims = claims
    }

    /// The user: `sub` (RFC 7519, section 4.1.2), or the policy's ``ClaimsPolicy/userClaim``.
    public var subject: String { claims.subject.value ?? "" }
    /// `exp`, in seconds since 1970 (section 4.1.4).
    public var expiresAt: Double { claims.expiresAt.value ?? -.infinity }
    /// `nbf`, in seconds since 1970; nil if the token has none (section 4.1.5).
    public var notBefore: Double? { claims.notBefore.value }
    /// `iat`, in seconds since 1970; nil if the token has none (section 4.1.6).
    public var issuedAt: Double? { claims.issuedAt.value }
    /// `iss`; nil if the token has none (section 4.1.1).
    public var issuer: String? { claims.issuer.value }
    /// `aud` as an array, even if the token has a single string; empty if it has none (section 4.1.3).
    public var audience: [String] { claims.audience.value ?? [] }
    /// `jti` if it has 1 to 256 bytes without control characters; otherwise nil (section 4.1.7).
    public var tokenID: String? {
        claims.tokenID.flatMap { id in
            (1...256).contains(id.utf8.count) && !id.hasControlCharacter ? id : nil
        }
    }
    package var kept: String? { claims.kept }
    /// The payload: one JSON object in UTF-8 without duplicate members.
    public var json: [UInt8] { claims.json }
}

extension VerifiedClaims: CustomStringConvertible {
    /// Only the expiry, because claims may contain personal data.
    public var description: String { "VerifiedClaims(expiresAt: \(expiresAt))" }
}
