package import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

/// An error response of the token service (RFC 6749, section 5.2).
package struct OAuthError: Error, Sendable, Equatable {
    package enum Code: String, Sendable, TextEnum {
        case invalidRequest = "invalid_request"
        case invalidClient = "invalid_client"
        case invalidGrant = "invalid_grant"
        case unauthorizedClient = "unauthorized_client"
        case unsupportedGrantType = "unsupported_grant_type"
        case invalidScope = "invalid_scope"
        /// Section 4.1.2.1. The app does not let devices register themselves.
        case accessDenied = "access_denied"
        /// Section 4.1.2.1. Sent with 429 and 503.
        case temporarilyUnavailable = "temporarily_unavailable"
        /// Section 4.1.2.1. An internal error.
        case serverError = "server_error"
    }

    let code: Code
    /// The cause and remedy, in ASCII without quotation marks and backslashes (section 5.2).
    let description: String
    /// Seconds until a retry makes sense; nil if a retry does not help.
    var retryAfterSeconds: Int?

    package init(_ code: Code, _ description: String, retryAfterSeconds: Int? = nil) {
        self.code = code
        self.description = description
        self.retryAfterSeconds = retryAfterSeconds
    }

    package static let schemas: JSONObject = [
        "OAuthFailure": [
            "type": "object", "required": ["error", "error_description"],
            "properties": ["error": ["type": "string"], "error_description": ["type": "string"]],
        ]
    ]

    static func tooMany(retryAfterSeconds: Int) -> OAuthError {
        OAuthError(
            .temporarilyUnavailable, "too many requests for tokens; try again after Retry-After",
            retryAfterSeconds: retryAfterSeconds)
    }

    init(_ failure: StoreFailure) {
        self.init(
            .temporarilyUnavailable, failure.summary + "; no token was issued, try again",
            retryAfterSeconds: failure.retryAfterSeconds)
        isStorage = true
    }

    private var isStorage = false

    private var status: Int {
        switch code {
        case .invalidClient: 401
        case .accessDenied: 403
        case .temporarilyUnavailable: isStorage ? 503 : 429
        case .serverError: 500
        default: 400
        }
    }

    /// The response. It must not be cached (section 5.1).
    var response: HTTPResponse {
        var response = HTTPResponse.json(
            status,
            JSONValue.object(["error": .string(code.rawValue), "error_description": .string(description)])
                .bytes
        ).withoutCaching
        response.code = code.rawValue
        if code == .invalidClient {
            response = response.with("WWW-Authenticate", #"Basic realm="countersign", charset="UTF-8""#)
        }
        if let retryAfterSeconds {
            response = response.with("Retry-After", String(retryAfterSeconds))
        }
        return response
    }
}

extension HTTPResponse {
    /// A copy that must not be cached (RFC 6749, section 5.1).
    var withoutCaching: HTTPResponse { with("Cache-Control", "no-store").with("Pragma", "no-cache") }
}
