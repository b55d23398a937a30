public import CountersignCore
public import Foundation

/// Why a call of Bloomreach Engagement has no result.
///
/// The description never holds a key, a token or a body.
public struct BloomreachError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, and in which of four ways it can be put right.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `no_customer_token`.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// There is no authorization provider. Nothing was sent: a mistake in the app.
        public static let noProvider = Code(rawValue: "no_provider")
        /// The provider returned nil or an empty text. Nothing was sent: sign the person in, or try again later.
        public static let noCustomerToken = Code(rawValue: "no_customer_token")
        /// The provider returned something that cannot stand in a header field. Nothing was sent: a mistake in the app.
        public static let malformedCustomerToken = Code(rawValue: "malformed_customer_token")
        /// The provider threw an error. Nothing was sent: try again later.
        public static let providerFailed = Code(rawValue: "provider_failed")
        /// The provider took too long. Nothing was sent: try again later.
        public static let providerTimedOut = Code(rawValue: "provider_timed_out")
        /// Too many requests wait for the provider. Nothing was sent: try again later.
        public static let providerBusy = Code(rawValue: "provider_busy")
        /// The call was made from inside the provider, which it would wait for. A mistake in the app.
        public static let calledFromProvider = Code(rawValue: "called_from_provider")
        /// The server refuses the API key or the customer token: get a new one. `authCode` may say why.
        public static let authorizationRefused = Code(rawValue: "authorization_refused")
        /// The request was for ids that are no longer the customer's, and the server refused its customer token: that says
        /// nothing about the token of the present customer. Call again for the present one.
        public static let customerChanged = Code(rawValue: "customer_changed")
        /// The server refuses a customer token that is for other ids than the request's, as after `identifyCustomer` or
        /// `anonymize`: get one for the present ids.
        public static let tokenOfAnotherCustomer = Code(rawValue: "token_of_another_customer")
        /// The server will not do this as it is asked; `detail` has its words.
        public static let refused = Code(rawValue: "refused")
        /// 410: what the request refers to is gone.
        public static let gone = Code(rawValue: "gone")
        /// The server fails or is too busy: try again later, not before `retryAfter`.
        public static let serverFailed = Code(rawValue: "server_failed")
        /// There was no answer: try again later.
        public static let unreachable = Code(rawValue: "unreachable")
        /// The answer is not one of such a server, as when a network asks for a login first: try again later.
        public static let notUnderstood = Code(rawValue: "not_understood")
        /// The message has no ids or no sync token: fetch the App Inbox first.
        public static let unknownMessage = Code(rawValue: "unknown_message")
        /// The argument cannot be sent: a mistake in the app.
        public static let invalidArgument = Code(rawValue: "invalid_argument")
        /// The task was cancelled.
        public static let cancelled = Code(rawValue: "cancelled")
    }

    /// What went wrong.
    public let code: Code
    /// The endpoint of the request.
    public let endpoint: BloomreachEndpoint?
    /// The project of the request.
    public let projectToken: String?
    /// More about it, such as the server's words: safe to log.
    public let detail: String
    /// The status of the server's answer; nil if there was none.
    public let status: Int?
    /// What a server of Countersign says about the token; nil if it did not.
    public let authCode: AuthErrorCode?
    /// Seconds that the server wants to be left alone; nil if it did not say.
    public let retryAfter: TimeInterval?

    package init(
        _ code: Code, _ endpoint: BloomreachEndpoint?, _ detail: String, projectToken: String? = nil,
        status: Int? = nil, authCode: AuthErrorCode? = nil, retryAfter: TimeInterval? = nil
    ) {
        self.code = code
        self.endpoint = endpoint
        self.detail = detail
        self.projectToken = projectToken
        self.status = status
        self.authCode = authCode
        self.retryAfter = retryAfter
    }

    /// True if the same call may succeed later although nothing else has changed.
    public var isWorthRetrying: Bool {
        switch code {
        case .providerFailed, .providerTimedOut, .providerBusy, .serverFailed, .unreachable, .notUnderstood:
            true
        default: false
        }
    }

    /// A refused customer token, named as what it is.
    func refined(isForPresentCustomer: Bool, isOfAnotherCustomer: Bool) -> BloomreachError {
        func error(_ code: Code, _ explanation: String) -> BloomreachError {
            BloomreachError(
                code, endpoint, "\(explanation): \(detail)", status: status, authCode: authCode,
                retryAfter: retryAfter)
        }
        if !isForPresentCustomer {
            return error(
                .customerChanged,
                "the server refused a customer token for ids that are no longer the customer's")
        }
        guard isOfAnotherCustomer || authCode == .subjectMismatch else { return self }
        return error(
            .tokenOfAnotherCustomer, "the customer token is for other ids than those of the customer")
    }

    /// Code, endpoint and detail.
    public var description: String {
        let place = endpoint.map { " (\($0.rawValue)\(status.map { ", status \($0)" } ?? ""))" } ?? ""
        return "\(code.rawValue)\(place): \(detail)"
    }
}
