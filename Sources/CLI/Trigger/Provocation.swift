internal import CountersignCore

/// A change of a valid request that causes a specific error code.
enum Provocation: Sendable {
    case noToken
    case text(String)
    /// Signed with an algorithm that the app does not allow.
    case otherAlgorithm
    case otherKey
    /// Changed claims. The second parameter is the time in seconds since 1970.
    case claims(@Sendable (inout JSONObject, _ now: Int64) -> Void)
    /// A token issued by the gateway whose session has ended.
    case endedSession
    case twoUsers

    /// By the resulting code. Other codes cannot be provoked; see `docs/reference/error-codes.md`.
    static let all: [AuthErrorCode: Provocation] = [
        .missingToken: .noToken,
        .decodingError: .text("not-a-token"),
        .incorrectAlgorithm: .otherAlgorithm,
        .noMatchingPublicKeys: .otherKey,
        .payloadUserIDMismatch: .twoUsers,
        .revoked: .endedSession,
        .invalidPayload: .claims { claims, _ in claims["exp"] = "soon" },
        .expirationRequired: .claims { claims, _ in claims["exp"] = nil },
        .expired: .claims { claims, now in
            claims["iat"] = .integer(now - 2 * lifetime)
            claims["exp"] = .integer(now - lifetime)
        },
        .notYetValid: .claims { claims, now in claims["nbf"] = .integer(now + lifetime) },
        .issuedInFuture: .claims { claims, now in
            claims["iat"] = .integer(now + lifetime)
            claims["exp"] = .integer(now + 2 * lifetime)
        },
        .lifetimeTooLong: .claims { claims, now in claims["exp"] = .integer(now + 2 * lifetime) },
        .audienceMismatch: .claims { claims, _ in claims["aud"] = "another-audience" },
        .issuerMismatch: .claims { claims, _ in claims["iss"] = "https://another-issuer.example" },
        .subjectMismatch: .claims { claims, _ in claims["sub"] = "another-user" },
    ]

    /// The maximum token lifetime of the app, in seconds.
    static let lifetime: Int64 = 600
}
