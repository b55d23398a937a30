package import CountersignCore

package struct VerificationCheck: Sendable {
    package enum Outcome: String, Sendable, TextEnum {
        case passed
        case failed
        /// Skipped because of an earlier fault or missing data.
        case notJudged = "not_judged"
    }

    package let name: String
    package let code: AuthErrorCode
    package let outcome: Outcome
    package let details: [String]

    /// Every check in order, one for each code.
    static let all: [(code: AuthErrorCode, name: String)] = [
        (.missingToken, "a token is present"), (.decodingError, "the token is a compact JWS"),
        (.incorrectAlgorithm, "the algorithm is allowed"), (.publicKeyError, "the public keys can be used"),
        (.noMatchingPublicKeys, "a public key verifies the signature"),
        (.invalidPayload, "the claims are well formed"), (.expirationRequired, "exp is present"),
        (.expired, "the token has not expired"), (.notYetValid, "nbf, if present, has passed"),
        (.issuedInFuture, "iat, if present, is not in the future"),
        (.lifetimeTooLong, "the lifetime is within the app's limit, if it has one"),
        (.audienceMismatch, "aud is accepted, if the app names an audience"),
        (.issuerMismatch, "iss is accepted, if the app names an issuer"),
        (.revoked, "the token was not revoked"), (.userRevoked, "iat is after any revocation for the user"),
        (.subjectMismatch, "the token belongs to the user"),
        (.payloadUserIDMismatch, "the request names one user only"),
    ]

    package static func list(
        of report: VerificationReport, withUser: Bool, withRevocations: Bool = true
    ) -> [VerificationCheck] {
        // The claims are checked together, if the payload is readable.
        let payload = all.firstIndex { $0.code == .invalidPayload } ?? all.count
        let firstFault = all.firstIndex { check in report.faults.contains { $0.code == check.code } }
        return all.enumerated().map { index, check in
            let details = report.faults.filter { $0.code == check.code }.map(\.detail)
            let wasChecked: Bool =
                switch check.code {
                case .payloadUserIDMismatch: withUser
                case .subjectMismatch:
                    withUser && report.checkedClaims && !report.faults.contains { $0.code == .invalidPayload }
                // Revocations are looked up only for a token with accepted claims.
                case .revoked, .userRevoked: withRevocations && report.claims != nil
                case .expired where report.faults.contains { $0.code == .expirationRequired }: false
                case .publicKeyError: true
                default: index < (firstFault ?? all.count) || (index > payload && report.checkedClaims)
                }
            return VerificationCheck(
                name: check.name, code: check.code,
                outcome: !details.isEmpty ? .failed : wasChecked ? .passed : .notJudged, details: details)
        }
    }
}
