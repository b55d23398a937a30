internal import CountersignCore
internal import Foundation

/// What an authorization server has answered, and what that means.
struct RefreshAnswer: Equatable {
    enum Meaning: Equatable {
        case granted(TokenFinder.Grant)
        /// The refresh token is dead, or the app may not use it: no repetition will help.
        case dead(ServerAnswer.Explanation)
        /// The server refuses the request, or answers something that is not a token: it must be changed on one of the two
        /// sides.
        case unusable(ServerAnswer.Explanation)
        /// Anything that may be different soon.
        case transient(ServerAnswer.Explanation)
    }

    let meaning: Meaning
    let status: Int
    var response: JSONObject = [:]
    var retryAfter: TimeInterval?
    /// The server's clock; nil for an answer that anything on the way could have given.
    var serverTime: Date?

    /// True if the server may have exchanged the token although no answer came.
    var mayBeExchanged = false

    /// There was no answer.
    init(failure: HTTPTransportError) {
        mayBeExchanged = [.timedOut, .connectionLost].contains(failure.code)
        let problem = ServerAnswer.Explanation(failure.code.rawValue, failure.detail)
        meaning = failure.code == .notPermitted ? .unusable(problem) : .transient(problem)
        status = 0
    }

    init(_ answer: TransportResponse, configuration: AuthorizationConfiguration) {
        status = answer.status
        let date = ServerAnswer.serverTime(in: answer)
        retryAfter = ServerAnswer.retryAfter(in: answer, serverTime: date)
        let object = JSONDocument.object(answer.body)
        response = object ?? [:]
        let code = Self.errorCode(response)
        let explanation = ServerAnswer.Explanation(
            code ?? "http_\(status)",
            code == nil ? "the server answered \(status) without saying why" : "the server answered \(status)"
        )
        switch status {
        case 200..<300:
            if let grant = object.flatMap({ TokenFinder(configuration: configuration).grant(in: $0) }) {
                meaning = .granted(grant)
            } else if object == nil {
                meaning = .unusable(.init("not_json", "the answer is not a JSON object"))
            } else {
                meaning = .unusable(
                    .init(code ?? "no_access_token", "there is no access token in the answer"))
            }
        case 408, 425, 429, 500...: meaning = .transient(explanation)
        case 300..<400: meaning = .unusable(.init("redirected", "redirects are not followed"))
        case 400..<500:
            if let code, Self.deadCodes.contains(code.lowercased()) {
                meaning = .dead(explanation)
            } else if [401, 403].contains(status), !ServerAnswer.isPage(answer) {
                meaning = .dead(explanation)
            } else {
                meaning = .unusable(explanation)
            }
        default: meaning = .transient(explanation)
        }
        switch meaning {
        case .granted: serverTime = date
        case .dead where code != nil: serverTime = date
        default: break
        }
    }

    /// RFC 6749, section 5.2, and what some servers say in its place.
    private static let deadCodes: Set = [
        "invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type",
        // Supabase
        "refresh_token_already_used", "refresh_token_not_found", "session_not_found", "session_expired",
        "user_banned", "user_not_found",
        // Firebase
        "token_expired", "user_disabled", "invalid_refresh_token", "missing_refresh_token",
        // Others
        "invalid_token", "refresh_token_expired", "refresh_token_revoked", "token_revoked",
    ]

    /// What the server says to people; nil if it says nothing, or too much.
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

    /// A word for what went wrong, as servers put it in different places; nil if there is none that is safe to repeat.
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
        return words.first { deadCodes.contains($0.lowercased()) } ?? words.first
    }
}
