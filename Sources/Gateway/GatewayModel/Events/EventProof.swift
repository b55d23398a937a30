internal import CountersignCore
internal import CountersignJOSE
internal import CountersignJSON

/// The verification result of the request that delivered an event. Does not contain the token.
package struct EventProof: Sendable, Equatable {
    package enum Verdict: String, Sendable, TextEnum {
        case verified
        /// A valid token of an OAuth client of the app, such as its backend, issued without a user.
        case server
        /// The token was missing or not valid, and the app did not require a token of the user.
        case warned
        /// The app's enforcement was disabled, so the token was not verified.
        case notJudged = "not_judged"
        case anonymous
    }

    package let verdict: Verdict
    /// The error code of the token; nil for a valid or unverified token.
    package let code: Int?
    package let keyID: String?
    /// The enforcement that applied to the request.
    package let enforcement: String?
    package let dialect: String
    package let requestID: String
    /// The `jti` of a valid token (RFC 7519, section 4.1.7).
    package let tokenID: String?
    /// The claims of a valid token that are listed in the policy's `keptClaims`, as a JSON object.
    package let claims: String?

    package init(
        verdict: Verdict, code: Int? = nil, keyID: String? = nil, enforcement: String? = nil, dialect: String,
        requestID: String, tokenID: String? = nil, claims: String? = nil
    ) {
        self.verdict = verdict
        self.code = code
        self.keyID = keyID
        self.enforcement = enforcement
        self.dialect = dialect
        self.requestID = requestID
        self.tokenID = tokenID
        self.claims = claims
    }
}

/// Selects events by a claim that was stored with them, given as `name=value`.
package struct ClaimFilter: Sendable, Equatable {
    package static let problem = "must be name=value"

    package let text: String
    /// The claim as JSON between commas: once with a string value and, if possible, once with a number or boolean.
    package let members: [String]

    package init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty else { return nil }
        self.text = text
        let name = JSONValue.string(String(parts[0])).text
        members = ([.string(String(parts[1]))] + Self.plain(parts[1])).map { ",\(name):\($0.text)," }
    }

    private static func plain(_ text: Substring) -> [JSONValue] {
        let parser = StrictJSONParser(maximumBytes: max(1, text.utf8.count))
        guard let value = try? parser.parse(bytes: Array(text.utf8), { $0.value }) else { return [] }
        switch value {
        case .bool: return [value]
        case .integer, .number: return ClaimsPolicy.kept(number: value).map { [$0] } ?? []
        default: return []
        }
    }

    /// A filter for display only; it matches nothing.
    package init(shown text: String) {
        self.text = text
        members = []
    }

    /// An SQL expression that is above 0 if `claims` has the member bound to `?`. `instr` is the database's function
    /// for text search. Claims are stored without spaces and with escaped quotes, so only whole members are found.
    package static func expression(using instr: String) -> String {
        "coalesce(\(instr)(',' || substr(claims, 2, length(claims) - 2) || ',', ?), 0)"
    }
}

extension JSONValue {
    fileprivate var text: String { String(decoding: bytes, as: UTF8.self) }
}

package enum VerdictFilter: Sendable, Equatable {
    case verdict(EventProof.Verdict)
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
