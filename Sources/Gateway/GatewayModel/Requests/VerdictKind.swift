internal import CountersignCore

package enum VerdictKind: String, Sendable, TextEnum {
    case anonymous
    case notJudged = "not_judged"
    case accepted
    case acceptedWithWarning = "warned"
    case rejected

    /// Whether the token was checked. False for anonymous requests, and for user tokens while enforcement is disabled.
    package var isVerified: Bool { self != .anonymous && self != .notJudged }
}
