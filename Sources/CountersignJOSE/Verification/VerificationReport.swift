public import CountersignCore

/// Everything that could be judged of one request's token.
public struct VerificationReport: Sendable {
    /// One thing that is wrong.
    public struct Fault: Sendable, CustomStringConvertible {
        /// Which.
        public let code: AuthErrorCode
        /// What exactly, in words; contains no part of a token, key or user id.
        public let detail: String

        /// Reason and detail; safe to log.
        public var description: String { "\(code.reason): \(detail)" }
    }

    /// Something that does not lead to a rejection but should be looked at.
    public struct Warning: RawRepresentable, Hashable, Sendable {
        /// The warning's stable name.
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

        /// The header has no `typ`.
        public static let typeMissing = Warning(rawValue: "typ_missing")
        /// The token lives longer than 24 hours.
        public static let longLifetime = Warning(rawValue: "lifetime_over_24h")
    }

    /// Every fault that could be found, in the fixed order of the checks. A claim is never judged before the
    /// signature is good.
    public internal(set) var faults: [Fault] = []
    /// What was noted besides.
    public internal(set) var warnings: [Warning] = []
    /// Whether the request names no user anywhere: then nothing was judged.
    public internal(set) var isAnonymous = false
    /// The claims; nil unless a token was judged and accepted.
    public internal(set) var claims: VerifiedClaims?
    /// The ring entry whose key verified the signature; nil if none did. Set also if the claims are not
    /// accepted.
    public internal(set) var matchedKeyID: String?
    /// How far the device's clock is ahead of ours, in seconds (negative: behind), if `exp`, `nbf` or `iat`
    /// fail by our clock but hold by the device's; else nil.
    public internal(set) var clockSkewSeconds: Double?

    /// Whether the signature was good and the payload could be read, so that each claim was judged.
    var judgedClaims = false

    /// The verdict's code: that of the first fault; nil if there is none.
    public var code: AuthErrorCode? { faults.first?.code }

    /// Whether nothing is wrong. True for anonymous requests too, which have no ``claims``.
    public var isAccepted: Bool { faults.isEmpty }

    /// Notes a fault that the caller found.
    package mutating func add(_ code: AuthErrorCode, _ detail: String) {
        faults.append(Fault(code: code, detail: detail))
    }
}
