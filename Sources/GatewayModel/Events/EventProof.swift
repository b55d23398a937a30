internal import CountersignCore

/// What a stored event is worth: how the request that brought it was judged when it came.
///
/// The token itself is not part of it.
package struct EventProof: Sendable, Equatable {
    package enum Verdict: String, Sendable, TextEnum {
        /// A valid token vouched for the user.
        case verified
        /// The app's own backend sent it: the token was one that an OAuth client of the app has for itself.
        case server
        /// The token was missing or not valid, and the app did not require one.
        case warned
        /// The app's enforcement was disabled: no token was looked at.
        case notJudged = "not_judged"
        /// The request named no user.
        case anonymous
    }

    package var verdict: Verdict
    /// What was wrong with the token; nil when nothing was, or nobody looked.
    package var code: Int?
    /// The key that verified the token.
    package var keyID: String?
    /// How strictly the app was judged.
    package var enforcement: String?
    /// What the client spoke, such as `native`.
    package var dialect: String
    package var requestID: String
    /// The `jti` of a token that was valid (RFC 7519, section 4.1.7).
    package var tokenID: String?

    package init(
        verdict: Verdict, code: Int? = nil, keyID: String? = nil, enforcement: String? = nil, dialect: String,
        requestID: String, tokenID: String? = nil
    ) {
        self.verdict = verdict
        self.code = code
        self.keyID = keyID
        self.enforcement = enforcement
        self.dialect = dialect
        self.requestID = requestID
        self.tokenID = tokenID
    }
}

/// Which verdicts to read.
package enum VerdictFilter: Sendable, Equatable {
    case verdict(EventProof.Verdict)
    /// Events that were stored before verdicts were.
    case unknown
    /// Those that nobody vouched for: all but the verified ones and those of the app's own backend.
    case unverified

    package static let words = EventProof.Verdict.allCases.map(\.rawValue) + ["unknown", "unverified"]

    package var word: String {
        switch self {
        case .verdict(let verdict): verdict.rawValue
        case .unknown: "unknown"
        case .unverified: "unverified"
        }
    }

    package init?(_ word: String) {
        switch word {
        case "unknown": self = .unknown
        case "unverified": self = .unverified
        default:
            guard let verdict = EventProof.Verdict(rawValue: word) else { return nil }
            self = .verdict(verdict)
        }
    }
}
