/// How an access token stands in the `Authorization` header field.
///
/// A string literal works: `strategy = "JWT"`.
public struct AuthorizationStrategy: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    /// `JWT` or `SAS`, in capitals.
    public let rawValue: String

    /// Any word, in any case.
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

    /// What is said of a token that cannot stand after `Bearer`.
    package static let malformedToken =
        "accessToken cannot stand after Bearer (RFC 6750, section 2.1): only letters, digits, -._~+/| and = at its end"

    /// The value of the header field. An unknown word counts as JWT.
    package func headerValue(_ token: String) -> String {
        self == .sas ? token : "Bearer \(token)"
    }
}
