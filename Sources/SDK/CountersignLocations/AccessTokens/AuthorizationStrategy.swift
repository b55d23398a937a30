/// The form of an access token in the `Authorization` header field. A string literal works: `strategy = "JWT"`.
public struct AuthorizationStrategy: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    /// `JWT` or `SAS`, in capitals.
    public let rawValue: String

    /// Creates a value from its word, in any case. Words that this version does not define are allowed.
    public init(rawValue: String) {
        self.rawValue = rawValue.uppercased()
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public init(stringLiteral value: String) {
        self.init(rawValue: value)
    }

    /// `Authorization: Bearer <token>` (RFC 6750, section 2.1).
    public static let jwt = AuthorizationStrategy(rawValue: "JWT")
    /// `Authorization: <token>`, as shared access signatures are sent.
    public static let sas = AuthorizationStrategy(rawValue: "SAS")

    package static let malformedToken =
        "accessToken is invalid after Bearer (RFC 6750, section 2.1): only letters, digits, -._~+/| and = at its end"

    /// An unknown strategy counts as JWT.
    package func headerValue(_ token: String) -> String {
        self == .sas ? token : "Bearer \(token)"
    }
}

extension SignedToken {
    /// Nil for a token that is invalid in the header field. After `Bearer` it must be a `b64token` (RFC 6750, section
    /// 2.1); `|` is accepted too, for Laravel Sanctum's tokens.
    package static func accessToken(_ text: String, strategy: AuthorizationStrategy) -> SignedToken? {
        if strategy == .sas { return accessToken(text) }
        let body = text.utf8.reversed().drop { $0 == UInt8(ascii: "=") }
        guard !body.isEmpty, body.allSatisfy({ $0.isASCIIAlphanumeric(or: "-._~+/|") }) else { return nil }
        return accessToken(text)
    }
}
