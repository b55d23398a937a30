internal import CountersignCore

/// How a request that would be accepted is spoilt, so that it gets a verdict.
enum Provocation: Sendable {
    case noToken
    /// Something else in the token's place.
    case text(String)
    /// The claims, signed with an algorithm that the app does not allow.
    case otherAlgorithm
    case otherKey
    /// Other claims. The second parameter is the time in seconds since 1970.
    case claims(@Sendable (inout JSONObject, _ now: Int64) -> Void)
    /// A token of the gateway's own whose session was ended.
    case endedSession
    case twoUsers

    /// By the code that they get. A code that is not here cannot be provoked; `docs/error-codes.md` says so.
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

    /// The longest that the app lets a token live, in seconds.
    static let lifetime: Int64 = 600
}
