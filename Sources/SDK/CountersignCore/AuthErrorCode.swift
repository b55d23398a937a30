/// Why a signed-user token was not accepted.
///
/// Codes 10 to 28 are the same as in Braze's SDK Authentication. Codes from 30 are specific to Countersign. Unknown
/// codes of a newer gateway are preserved.
public struct AuthErrorCode: RawRepresentable, Hashable, Sendable, Codable {
    /// The number on the wire.
    public let rawValue: Int

    /// Creates a code from any number, known or not.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// 10: the token has no `exp` claim.
    public static let expirationRequired = AuthErrorCode(rawValue: 10)
    /// 20: the token is too long or not three base64url parts, or the header is not JSON, has `crit` or a wrong `typ`.
    public static let decodingError = AuthErrorCode(rawValue: 20)
    /// 21: `sub`, or the claim set for the app instead, is absent or is not the request's user id, byte for byte.
    public static let subjectMismatch = AuthErrorCode(rawValue: 21)
    /// 22: `exp` has passed.
    public static let expired = AuthErrorCode(rawValue: 22)
    /// 23: the claims are not a JSON object, or a registered claim has the wrong type.
    public static let invalidPayload = AuthErrorCode(rawValue: 23)
    /// 24: `alg` is not one that the app allows.
    public static let incorrectAlgorithm = AuthErrorCode(rawValue: 24)
    /// 25: the app has public keys, but all are unusable.
    public static let publicKeyError = AuthErrorCode(rawValue: 25)
    /// 26: the request names a user but carries no token.
    public static let missingToken = AuthErrorCode(rawValue: 26)
    /// 27: no public key of the app verifies the signature.
    public static let noMatchingPublicKeys = AuthErrorCode(rawValue: 27)
    /// 28: the request carries ids of more than one user.
    public static let payloadUserIDMismatch = AuthErrorCode(rawValue: 28)
    /// 30: `nbf` lies in the future.
    public static let notYetValid = AuthErrorCode(rawValue: 30)
    /// 31: `iat` lies in the future.
    public static let issuedInFuture = AuthErrorCode(rawValue: 31)
    /// 32: the token lives longer than the app allows.
    public static let lifetimeTooLong = AuthErrorCode(rawValue: 32)
    /// 33: `aud` does not name this app's audience.
    public static let audienceMismatch = AuthErrorCode(rawValue: 33)
    /// 34: `iss` is not the app's issuer.
    public static let issuerMismatch = AuthErrorCode(rawValue: 34)
    /// 35: the token, its session or its OAuth client was revoked.
    public static let revoked = AuthErrorCode(rawValue: 35)
    /// 36: an operator has revoked the tokens issued to the user before the revocation.
    public static let userRevoked = AuthErrorCode(rawValue: 36)

    /// In ascending order.
    package static let all: [AuthErrorCode] = entries.map(\.code)

    /// The word on the wire, such as `EXPIRED`; `UNKNOWN` for a code of a newer version.
    public var reason: String { entry?.reason ?? "UNKNOWN" }

    package var summary: String {
        entry?.summary ?? "The gateway sent a code that this version does not know."
    }

    /// The most likely first.
    package var likelyCauses: [String] { entry?.causes ?? [] }

    /// The remedy, as a sentence in English.
    public var fix: String { entry?.fix ?? "Update to a version that knows this code." }

    /// Whether the same request may be accepted with another token. True for an unknown code.
    package var isMendedByAnotherToken: Bool { entry?.isMendedByAnotherToken ?? true }

    private var entry: Entry? { Self.entryOfCode[self] }

    private static let entryOfCode = Dictionary(uniqueKeysWithValues: entries.map { ($0.code, $0) })

    private struct Entry {
        let code: AuthErrorCode
        let reason: String
        let summary: String
        let causes: [String]
        let fix: String
        var isMendedByAnotherToken = true
    }

    private static let entries: [Entry] = [
        Entry(
            code: .expirationRequired, reason: "EXPIRATION_REQUIRED",
            summary: "The token has no expiration time.",
            causes: ["the backend signs claims without exp", "exp is null or nested in another object"],
            fix: "Add exp, in seconds since 1970, to the claims that the backend signs."),
        Entry(
            code: .decodingError, reason: "DECODING_ERROR",
            summary: "The token cannot be read as a compact JWS.",
            causes: [
                "something else than the token was passed", "the token was cut or URL-encoded on the way",
                "the header has crit or a typ that is not accepted",
            ],
            fix:
                "Pass the token exactly as the backend made it: three base64url parts, without quotes or white space."
        ),
        Entry(
            code: .subjectMismatch, reason: "SUBJECT_MISMATCH",
            summary: "The token belongs to another user than the request.",
            causes: [
                "the app kept the previous user's token after switching users",
                "the backend signs another kind of id than the app identifies with",
                "the ids differ in case or Unicode form",
            ],
            fix: "Sign sub with exactly the user id that the app passes when it identifies the user."),
        Entry(
            code: .expired, reason: "EXPIRED",
            summary: "The token has expired.",
            causes: ["the token was not refreshed in time", "a clock is wrong"],
            fix:
                "Sign a new token, as the backend does whenever the SDK asks for one; consider a longer lifetime."
        ),
        Entry(
            code: .invalidPayload, reason: "INVALID_PAYLOAD",
            summary: "The claims are not valid.",
            causes: [
                "exp, nbf or iat is a string instead of a number", "sub is a number instead of a string",
                "a claim occurs twice",
            ],
            fix: "Sign one JSON object: numbers for exp, nbf and iat, strings for sub and iss."),
        Entry(
            code: .incorrectAlgorithm, reason: "INCORRECT_ALGORITHM",
            summary: "The token's algorithm is not allowed for this app.",
            causes: ["the backend's library defaults to HS256", "the app allows RS256 only"],
            fix: "Sign with RS256, or allow the algorithm for this app."),
        Entry(
            code: .publicKeyError, reason: "PUBLIC_KEY_ERROR",
            summary: "None of the app's public keys can be used.",
            causes: ["the key was cut when it was pasted", "the RSA key is shorter than 2048 bits"],
            fix: "Add the public key again, whole, as PEM or JWK.", isMendedByAnotherToken: false),
        Entry(
            code: .missingToken, reason: "MISSING_TOKEN",
            summary: "The request names a user but carries no token.",
            causes: [
                "an app version that sends no tokens",
                "the app identified the user without passing a token",
            ],
            fix: "Pass the token when identifying the user, or set a token provider."),
        Entry(
            code: .noMatchingPublicKeys, reason: "NO_MATCHING_PUBLIC_KEYS",
            summary: "No public key of the app verifies the token's signature.",
            causes: [
                "the backend signs with a key that was not added or was deleted",
                "the app has no key for this algorithm", "the token was changed on the way",
            ],
            fix: "Add the public half of the key that the backend signs with to this app."),
        Entry(
            code: .payloadUserIDMismatch, reason: "PAYLOAD_USER_ID_MISMATCH",
            summary: "The request carries events of more than one user.",
            causes: [
                "a client batches events of several users", "an event has two user ids",
                "an alias has the id of another user in previousId",
            ],
            fix: "Send one request per user, each with that user's token.", isMendedByAnotherToken: false),
        Entry(
            code: .notYetValid, reason: "NOT_YET_VALID",
            summary: "The token is not valid yet.",
            causes: ["nbf is in the future", "the backend's clock is ahead"],
            fix: "Leave out nbf or set it to the time of signing; check the backend's clock."),
        Entry(
            code: .issuedInFuture, reason: "ISSUED_IN_FUTURE",
            summary: "The token claims to have been issued in the future.",
            causes: ["the backend's clock is ahead", "iat is in milliseconds"],
            fix: "Set iat to the time of signing, in seconds; check the backend's clock."),
        Entry(
            code: .lifetimeTooLong, reason: "LIFETIME_TOO_LONG",
            summary: "The token lives longer than this app allows.",
            causes: ["the backend signs long-lived tokens", "exp is in milliseconds"],
            fix: "Sign tokens with a shorter lifetime, or raise the app's maximum lifetime."),
        Entry(
            code: .audienceMismatch, reason: "AUDIENCE_MISMATCH",
            summary: "The token is meant for another audience.",
            causes: [
                "the token was made for another service", "the app's audience is set to something else",
            ],
            fix: "Sign aud with the audience that is set for this app."),
        Entry(
            code: .issuerMismatch, reason: "ISSUER_MISMATCH",
            summary: "The token was issued by another issuer.",
            causes: [
                "the token was made for another environment", "the app's issuer is set to something else",
            ],
            fix: "Sign iss with the issuer that is set for this app."),
        Entry(
            code: .revoked, reason: "REVOKED",
            summary: "The token, its session or its OAuth client was revoked.",
            causes: ["the user was signed out", "an operator deleted the OAuth client"],
            fix: "Sign the user in again and get a new token."),
        Entry(
            code: .userRevoked, reason: "USER_REVOKED",
            summary: "An operator has revoked the tokens that the user had.",
            causes: [
                "an operator signed the user out everywhere", "the token has no iat, so it counts as old",
            ],
            fix: "Sign the user in again and get a new token, with iat."),
    ]
}
