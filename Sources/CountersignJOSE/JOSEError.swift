internal import CountersignCore

/// Why a key, a key set or a token could not be used or made.
///
/// Every code here is a mistake that asks a person: nothing becomes better by trying again.
public struct JOSEError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, for programs.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's stable name.
        public let rawValue: String

        /// Any name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public static func == (left: Self, right: Self) -> Bool { left.rawValue == right.rawValue }
        package static func != (left: Self, right: Self) -> Bool { !(left == right) }
        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

        /// The text is not a key in a form that we read, or it was cut.
        public static let unreadableKey = Code(rawValue: "unreadable_key")
        /// A private or symmetric key stands where a public one is expected. It must be treated as leaked.
        public static let secretKey = Code(rawValue: "secret_key")
        /// A key of another type, curve or algorithm than ours.
        public static let unsupportedKey = Code(rawValue: "unsupported_key")
        /// An RSA key outside 2048 to 8192 bits, or with a bad exponent or modulus.
        public static let weakKey = Code(rawValue: "weak_key")
        /// A point that is not on its curve, or one of small order.
        public static let invalidPoint = Code(rawValue: "invalid_point")
        /// `use`, `key_ops` or `alg` of the key say that it does not verify such signatures.
        public static let keyNotForVerification = Code(rawValue: "key_not_for_verification")
        /// A set has more keys than we look at.
        public static let tooManyKeys = Code(rawValue: "too_many_keys")
        /// The text is not a token in compact form.
        public static let malformedToken = Code(rawValue: "malformed_token")
        /// The key cannot sign with this algorithm, or the library refused.
        public static let signingFailed = Code(rawValue: "signing_failed")
    }

    /// What went wrong, for programs.
    public let code: Code
    /// What went wrong and what to do, for people. Never contains any part of a key or token.
    public let reason: String

    init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    /// Code and reason; safe to log.
    public var description: String { "\(code.rawValue): \(reason)" }
}
