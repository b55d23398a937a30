internal import CountersignCore
package import CountersignJOSE
package import GatewayHTTP
internal import GatewayModel

/// The parts of a request that admission needs, independent of its dialect.
package struct AdmissionRequest {
    package var credential: Credential
    /// The distinct user ids of the request, in the order of their first occurrence. Empty for an anonymous request.
    package var userIDs: [String]
    /// The device's clock in seconds since 1970; nil if the request does not state it.
    package var deviceTime: Double?

    package init(credential: Credential, userIDs: [String] = [], deviceTime: Double? = nil) {
        self.credential = credential
        self.userIDs = userIDs
        self.deviceTime = deviceTime
    }
}

/// The result of admission. Responses, metrics and logs derive from it.
package enum Verdict {
    /// The request names no user, so its token, if any, was not verified.
    case anonymous
    /// Enforcement is disabled, so the token, if any, was not verified.
    case notJudged
    case accepted(VerificationReport, from: Principal)
    /// The token is missing or invalid. Enforcement is optional for the user, so the response has a warning.
    case acceptedWithWarning(VerificationReport)
    /// The token is missing or invalid. Enforcement is required for the user, or the credential is an access token.
    /// An access token whose user claim is absent or empty is rejected too.
    case rejected(VerificationReport)
}

extension Verdict {
    func users(of admission: AdmissionRequest) -> [String]? {
        switch self {
        case .rejected: nil
        case .accepted(let report, _) where admission.credential.scheme == .accessToken:
            report.claims.map { [$0.subject] } ?? []
        case .accepted, .acceptedWithWarning, .anonymous, .notJudged: admission.userIDs
        }
    }
}

extension AdmittedApp {
    /// `instant` is the current time in seconds since 1970.
    package func admit(_ request: AdmissionRequest, at instant: Double) -> Verdict {
        switch request.credential.scheme {
        case .userToken:
            guard !request.userIDs.isEmpty else { return .anonymous }
            guard enforcement != .disabled else { return .notJudged }
            let (report, holder) = verify(request, at: instant)
            if report.isAccepted { return .accepted(report, from: holder) }
            return enforcement(of: request.userIDs) == .required
                ? .rejected(report) : .acceptedWithWarning(report)
        case .accessToken:
            let (report, holder) = verify(request, at: instant)
            return report.isAccepted ? .accepted(report, from: holder) : .rejected(report)
        }
    }

    package func report(on request: AdmissionRequest, at instant: Double) -> VerificationReport {
        verify(request, at: instant).report
    }

    private func verify(
        _ request: AdmissionRequest, at instant: Double
    ) -> (report: VerificationReport, holder: Principal) {
        var (report, holder) = verifyToken(request, at: instant)
        if request.credential.scheme == .accessToken, report.claims?.subject.isEmpty == true {
            report.add(.subjectMismatch, "\(verifier.policy.userClaim) is absent or empty")
        }
        if let restrictions, holder == .device, let claims = report.claims,
            restrictions.revokes(claims.subject, issuedAt: claims.issuedAt, at: instant)
        {
            report.add(.userRevoked, "an operator has revoked the tokens that the user had")
        }
        return (report, holder)
    }

    private func verifyToken(
        _ request: AdmissionRequest, at instant: Double
    ) -> (report: VerificationReport, holder: Principal) {
        let token = request.credential.token
        switch request.credential.scheme {
        case .userToken:
            if let found = issued.verify(token, appID: id, userIDs: request.userIDs, at: instant) {
                return found
            }
            let report = verifier.verify(
                token, userID: nil, payloadUserIDs: request.userIDs, at: instant,
                deviceTime: request.deviceTime)
            return (report, .device)
        case .accessToken:
            return issued.verify(token, appID: id, userIDs: nil, at: instant)
                ?? (verifier.inspect(token, at: instant), .device)
        }
    }
}

package struct AuthErrorBody {
    package let report: VerificationReport
    let enforcement: Enforcement
    let requestID: String
    let serverMilliseconds: Int64

    package func write(to output: inout [UInt8]) { write(.of(code), to: &output) }

    private var code: AuthErrorCode { report.code ?? .decodingError }

    private func write(_ texts: Texts, to output: inout [UInt8]) {
        // Writes the members in the order of their names, as `JSONValue` does. Builds no `JSONValue`, because clients
        // with an expired token repeat their requests often.
        output.append(UInt8(ascii: "{"))
        if let skew = report.clockSkewSeconds {
            output.append(contentsOf: #""clock_skew_seconds":"#.utf8)
            JSONValue.number(skew).write(to: &output)
            output.append(UInt8(ascii: ","))
        }
        output.append(contentsOf: #""enforcement":"#.utf8)
        JSONValue.write(enforcement.rawValue, to: &output)
        output.append(contentsOf: texts.code)
        output.append(contentsOf: #","faults":["#.utf8)
        for (index, fault) in report.faults.enumerated() {
            if index > 0 { output.append(UInt8(ascii: ",")) }
            output.append(contentsOf: (index > 0 ? Texts.of(fault.code) : texts).fault)
        }
        output.append(contentsOf: texts.hintAndMessage)
        output.append(contentsOf: (enforcement == .optional ? "true" : "false").utf8)
        output.append(contentsOf: texts.reason)
        JSONValue.write(requestID, to: &output)
        output.append(contentsOf: texts.retryable)
        output.append(decimal: serverMilliseconds)
        output.append(UInt8(ascii: "}"))
    }

    private final class Texts: Sendable {
        private static let all = Dictionary(
            uniqueKeysWithValues: AuthErrorCode.all.map { ($0, Texts($0)) })

        let code: [UInt8]
        let fault: [UInt8]
        let hintAndMessage: [UInt8]
        let reason: [UInt8]
        let retryable: [UInt8]
        /// The beginning of the 401 response's body.
        let rejection: [UInt8]
        /// The challenge of RFC 6750, section 3.
        let challenge: String

        static func of(_ code: AuthErrorCode) -> Texts { all[code] ?? Texts(code) }

        private init(_ code: AuthErrorCode) {
            func json(_ value: JSONValue) -> String { String(decoding: value.bytes, as: UTF8.self) }
            let reason = json(.string(code.reason))
            let summary = json(.string(code.summary))
            self.code = Array(#","error_code":\#(code.rawValue)"#.utf8)
            fault = Array(#"{"error_code":\#(code.rawValue),"reason":\#(reason)}"#.utf8)
            hintAndMessage = Array(
                #"],"hint":\#(json(.string(code.fix))),"message":\#(summary),"optional":"#.utf8)
            self.reason = Array(#","reason":\#(reason),"request_id":"#.utf8)
            retryable = Array(
                #","retryable":\#(code.isMendedByAnotherToken),"server_time_ms":"#.utf8)
            rejection = Array(
                #"{"success":false,"code":\#(reason),"message":\#(summary),"auth_error":"#.utf8)
            challenge = #"Bearer error="invalid_token", error_description="\#(code.reason)""#
        }
    }

    /// Appends the object to `output` as the member `auth_warning` after other members.
    package func writeMember(to output: inout [UInt8]) {
        output.append(contentsOf: #","auth_warning":"#.utf8)
        write(to: &output)
    }

    package func rejection() -> HTTPResponse {
        let texts = Texts.of(code)
        var body: [UInt8] = []
        // With the array's header, the buffer is small enough for glibc's per-thread cache.
        body.reserveCapacity(960)
        body.append(contentsOf: texts.rejection)
        write(texts, to: &body)
        body.append(UInt8(ascii: "}"))
        return HTTPResponse.json(401, body).with("WWW-Authenticate", texts.challenge)
    }
}
