internal import CountersignCore

/// An error of a key, a key set or a token. Never temporary, so a retry does not help.
public struct JOSEError: Error, Sendable, CustomStringConvertible {
    /// The kind of an error.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's stable name.
        public let rawValue: String

        /// Creates a code with any name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public static func == (left: Self, right: Self) -> Bool { left.rawValue == right.rawValue }
        package static func != (left: Self, right: Self) -> Bool { !(left == right) }
        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

        /// The text is not a key in a supported format, or it was truncated.
        public static let unreadableKey = Code(rawValue: "unreadable_key")
        /// A private or symmetric key was given instead of a public one. It must be treated as leaked.
        public static let secretKey = Code(rawValue: "secret_key")
        /// The key's type, curve or algorithm is not supported.
        public static let unsupportedKey = Code(rawValue: "unsupported_key")
        /// An RSA key outside 2048 to 8192 bits or with a bad exponent or modulus, or an HS256 secret under 32 bytes.
        public static let weakKey = Code(rawValue: "weak_key")
        /// A point that is not on its curve or has a small order.
        public static let invalidPoint = Code(rawValue: "invalid_point")
        /// The key's `use`, `key_ops` or `alg` does not allow verifying, or the key cannot be used with the algorithm.
        public static let keyNotForVerification = Code(rawValue: "key_not_for_verification")
        /// A set has more keys than supported.
        public static let tooManyKeys = Code(rawValue: "too_many_keys")
        /// The text is not a token in compact form.
        public static let malformedToken = Code(rawValue: "malformed_token")
        /// OpenSSL could not generate the key or sign with it.
        public static let signingFailed = Code(rawValue: "signing_failed")
    }

    /// The kind of error, for programs.
    public let code: Code
    /// The cause and remedy, for people. Contains no part of a key or token.
    public let reason: String

    init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    /// Code and reason. Safe to log.
    public var description: String { "\(code.rawValue): \(reason)" }
}
