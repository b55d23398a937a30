internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// A response of an authorization server and its meaning.
struct RefreshAnswer: Equatable {
    enum Meaning: Equatable {
        case granted(TokenFinder.Grant)
        /// The refresh token is invalid, or the app may not use it. A retry cannot succeed.
        case invalid(ServerAnswer.Explanation)
        /// 401 or 403 without a known error code. It may come from a firewall that lets a later request pass.
        case rejected(ServerAnswer.Explanation)
        /// The server rejects the request, or its response has no token. The app or the server has a fault.
        case unusable(ServerAnswer.Explanation)
        case transient(ServerAnswer.Explanation)
    }

    let meaning: Meaning
    let status: Int
    var response: JSONObject = [:]
    var retryAfter: TimeInterval?
    /// The server's clock; nil if the response may come from an intermediary.
    var serverTime: Date?

    /// True if the server may have exchanged the token, but the response is missing or truncated.
    var mayBeExchanged = false

    init(failure: HTTPTransportError) {
        mayBeExchanged = [.timedOut, .connectionLost].contains(failure.code)
        let problem = ServerAnswer.Explanation(failure.code.rawValue, failure.detail)
        meaning = failure.code == .notPermitted ? .unusable(problem) : .transient(problem)
        status = 0
    }

    /// `sent` are the tokens of the request. A token that the response repeats is not an error code and is not logged.
    init(_ answer: TransportResponse, configuration: AuthorizationConfiguration, sent: [String?] = []) {
        status = answer.status
        let date = ServerAnswer.serverTime(in: answer)
        retryAfter = ServerAnswer.retryAfter(in: answer, serverTime: date)
        let object = JSONDocument.object(answer.body)
        response = object ?? [:]
        let code = Self.errorCode(response).flatMap { sent.contains($0) ? nil : $0 }
        let explanation = ServerAnswer.Explanation(
            code ?? "http_\(status)",
            code == nil ? "the server answered \(status) without a reason" : "the server answered \(status)"
        )
        let page = ServerAnswer.Explanation("page", "the response is a page, perhaps a network's login page")
        switch status {
        case 200..<300:
            if let grant = object.flatMap({ TokenFinder(configuration: configuration).grant(in: $0) }) {
                meaning = .granted(grant)
            } else if Self.isInvalid(code) {
                meaning = .invalid(explanation)
            } else if Self.isTransient(code) {
                meaning = .transient(explanation)
            } else if object == nil {
                mayBeExchanged = answer.isTruncated
                meaning = .transient(
                    ServerAnswer.isPage(answer) ? page : .init("not_json", "the answer is not a JSON object"))
            } else {
                meaning = .unusable(
                    .init(code ?? "no_access_token", "the response has no access token"))
            }
        case _ where Self.isInvalid(code): meaning = .invalid(explanation)
        case _ where Self.isTransient(code): meaning = .transient(explanation)
        // Transient, because networks with a login page usually redirect.
        case 300..<400: meaning = .transient(.init("redirected", "redirects are not followed"))
        case 400..<500 where ServerAnswer.isPage(answer): meaning = .transient(page)
        case 401, 403: meaning = .rejected(explanation)
        case 408, 421, 425, 429: meaning = .transient(explanation)
        case 400..<500: meaning = .unusable(explanation)
        default: meaning = .transient(explanation)
        }
        switch meaning {
        case .granted: serverTime = date
        case .invalid where code != nil: serverTime = date
        default: break
        }
    }

    private static func isInvalid(_ code: String?) -> Bool {
        code.map { invalidCodes.contains($0.lowercased()) } ?? false
    }

    /// Error codes of RFC 6749, section 5.2, and of other servers. They count under any status, because GitHub and
    /// Slack reply with 200.
    private static let invalidCodes: Set = [
        "invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type",
        // Supabase
        "refresh_token_already_used", "refresh_token_not_found", "session_not_found", "session_expired",
        "user_banned", "user_not_found",
        // Firebase
        "token_expired", "user_disabled", "invalid_refresh_token", "missing_refresh_token",
        // GitHub
        "bad_refresh_token", "incorrect_client_credentials",
        // Others
        "invalid_token", "refresh_token_expired", "refresh_token_revoked", "token_revoked",
    ]

    private static func isTransient(_ code: String?) -> Bool {
        code.map { transientCodes.contains($0.lowercased()) } ?? false
    }

    /// Error codes of RFC 6749, section 4.1.2.1, of RFC 8628, section 3.5, and of other servers, under any status.
    private static let transientCodes: Set = [
        "temporarily_unavailable", "server_error", "slow_down",
        // Slack, Supabase, Firebase
        "ratelimited", "over_request_rate_limit", "resource_exhausted", "unavailable", "internal",
        // Others
        "rate_limited", "rate_limit_exceeded", "too_many_requests", "service_unavailable",
        "internal_server_error",
    ]

    /// The remedy that is logged after a failed refresh.
    var remedy: String {
        switch meaning {
        case .granted: "check that the token store can be written"
        case .invalid, .rejected: "sign the user in again and pass the new tokens"
        case .unusable: "check refreshUrl, refreshPayload, refreshHeaders and responseMapping"
        case .transient: "check refreshUrl and the network; the SDK tries again"
        }
    }

    /// The server's description of the error: 1 to 500 characters, without control characters.
    var errorDescription: String? {
        var candidates = ["error_description", "errorDescription", "message", "msg", "detail"].compactMap {
            response[$0]
        }
        if let error = response["error"]?.object, let message = error["message"] {
            candidates.append(message)
        }
        return candidates.lazy.compactMap { value -> String? in
            guard case .string(let text) = value, (1...500).contains(text.count),
                text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
            else { return nil }
            return text
        }.first
    }

    /// Searches the members in which servers send error codes. Nil if no code is safe to log.
    private static func errorCode(_ response: JSONObject) -> String? {
        var candidates = ["error", "error_code", "code", "errorCode"].compactMap { response[$0] }
        if let error = response["error"]?.object {
            candidates = ["code", "message", "status", "type"].compactMap { error[$0] } + candidates
        }
        let words = candidates.compactMap { value -> String? in
            guard case .string(let text) = value, (1...64).contains(text.utf8.count),
                text.utf8.allSatisfy({ $0.isASCIILetter || $0 == UInt8(ascii: "_") })
            else { return nil }
            return text
        }
        return words.first(where: isInvalid) ?? words.first(where: isTransient) ?? words.first
    }
}
