internal import CountersignCore

/// The verification result of the request that delivered an event.
///
/// Does not contain the token.
package struct EventProof: Sendable, Equatable {
    package enum Verdict: String, Sendable, TextEnum {
        /// A valid token of the user.
        case verified
        /// A valid token of an OAuth client of the app, such as its backend, issued without a user.
        case server
        /// The token was missing or not valid, and the app did not require a token.
        case warned
        /// The app's enforcement was disabled, so the token was not verified.
        case notJudged = "not_judged"
        /// The request had no user.
        case anonymous
    }

    package var verdict: Verdict
    /// The error code of the token; nil for a valid or unverified token.
    package var code: Int?
    /// The key that verified the token.
    package var keyID: String?
    /// The app's enforcement at that time.
    package var enforcement: String?
    /// The API dialect of the client, such as `native`.
    package var dialect: String
    package var requestID: String
    /// The `jti` of a valid token (RFC 7519, section 4.1.7).
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

package enum VerdictFilter: Sendable, Equatable {
    case verdict(EventProof.Verdict)
    /// Events stored by a version without verdicts.
    case unknown
    /// All events except verified events and those of the app's own backend.
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
