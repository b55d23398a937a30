public import CountersignCore

/// The result of verifying one request's token.
public struct VerificationReport: Sendable {
    /// A failed check.
    public struct Fault: Sendable, CustomStringConvertible {
        /// The error code.
        public let code: AuthErrorCode
        /// The exact cause, in words. Contains no part of a token, key or user id.
        public let detail: String

        /// Reason and detail. Safe to log.
        public var description: String { "\(code.reason): \(detail)" }
    }

    /// A problem that does not lead to a rejection.
    public struct Warning: RawRepresentable, Hashable, Sendable {
        /// The warning's stable name.
        public let rawValue: String

        /// Creates a warning with any name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public static func == (left: Self, right: Self) -> Bool { left.rawValue == right.rawValue }
        package static func != (left: Self, right: Self) -> Bool { !(left == right) }
        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

        /// The header has no `typ`.
        public static let typeMissing = Warning(rawValue: "typ_missing")
        /// The token's lifetime is longer than 24 hours.
        public static let longLifetime = Warning(rawValue: "lifetime_over_24h")
    }

    /// The faults that were found, in the fixed order of the checks. Claims are checked only after the
    /// signature.
    public internal(set) var faults: [Fault] = []
    /// Problems that do not lead to a rejection.
    public internal(set) var warnings: [Warning] = []
    /// Whether the request names no user, so that nothing was checked.
    public internal(set) var isAnonymous = false
    /// The claims of an accepted token; otherwise nil.
    public internal(set) var claims: VerifiedClaims?
    /// The id of the key ring entry whose key verified the signature, even if the claims are not accepted; nil if no
    /// key did.
    public internal(set) var matchedKeyID: String?
    /// The seconds by which the device's clock is ahead of the gateway's; negative if it is behind. Nil unless
    /// `exp`, `nbf` or `iat` is invalid by the gateway's clock and all are valid by the device's clock.
    public internal(set) var clockSkewSeconds: Double?

    /// Whether the signature was valid and the payload readable, so that the claims were checked.
    var checkedClaims = false

    /// The code of the first fault; nil without faults.
    public var code: AuthErrorCode? { faults.first?.code }

    /// Whether there are no faults. Also true for anonymous requests, which have no ``claims``.
    public var isAccepted: Bool { faults.isEmpty }

    package mutating func add(_ code: AuthErrorCode, _ detail: String) {
        faults.append(Fault(code: code, detail: detail))
    }
}
