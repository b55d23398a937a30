package import CountersignCore
package import Foundation

/// Error codes of Bloomreach Engagement calls.
extension CountersignError.Code {
    /// There is no authorization provider. Nothing was sent: a mistake in the app.
    public static let noProvider = CountersignError.Code(rawValue: "no_provider")
    /// The provider returned nil or an empty text. Nothing was sent: sign the user in, or try again later.
    public static let noCustomerToken = CountersignError.Code(rawValue: "no_customer_token")
    /// The provider returned a value that is invalid in a header field. Nothing was sent: a mistake in the app.
    public static let malformedCustomerToken = CountersignError.Code(rawValue: "malformed_customer_token")
    /// The provider threw an error. Nothing was sent: try again later.
    public static let providerFailed = CountersignError.Code(rawValue: "provider_failed")
    /// The provider took too long. Nothing was sent: try again later.
    public static let providerTimedOut = CountersignError.Code(rawValue: "provider_timed_out")
    /// Too many requests wait for the provider. Nothing was sent: try again later.
    public static let providerBusy = CountersignError.Code(rawValue: "provider_busy")
    /// The provider made a call that would wait for the provider itself: a mistake in the app.
    public static let calledFromProvider = CountersignError.Code(rawValue: "called_from_provider")
    /// The server rejected the API key, the customer token or the signed-user token. `authCode` may have the reason.
    public static let authorizationRefused = CountersignError.Code(rawValue: "authorization_refused")
    /// The customer's IDs or the cached App Inbox have changed since the request, and the server may have rejected the
    /// earlier customer's token. Call again for the current customer. The current token may still be valid.
    public static let customerChanged = CountersignError.Code(rawValue: "customer_changed")
    /// The server rejected the token of another customer than the request's, such as after `identifyCustomer` or
    /// `anonymize`: get a token for the current IDs.
    public static let tokenOfAnotherCustomer = CountersignError.Code(rawValue: "token_of_another_customer")
    /// The server rejected the request; `detail` has the server's text.
    public static let refused = CountersignError.Code(rawValue: "refused")
    /// 410: the referenced resource is gone.
    public static let gone = CountersignError.Code(rawValue: "gone")
    /// The server fails or is too busy: try again later, not before `retryAfter`.
    public static let serverFailed = CountersignError.Code(rawValue: "server_failed")
    /// No response was received: try again later.
    public static let unreachable = CountersignError.Code(rawValue: "unreachable")
    /// The response is not a Bloomreach server's, but for example a captive portal's: try again later.
    public static let notUnderstood = CountersignError.Code(rawValue: "not_understood")
    /// The message is unknown for this customer and project: fetch the App Inbox first.
    public static let unknownMessage = CountersignError.Code(rawValue: "unknown_message")
    /// The argument cannot be sent: a mistake in the app.
    public static let invalidArgument = CountersignError.Code(rawValue: "invalid_argument")
    /// The task was cancelled, or the client is closed.
    public static let cancelled = CountersignError.Code(rawValue: "cancelled")
}

extension CountersignError {
    /// The endpoint of a request to Bloomreach Engagement; nil for other errors.
    public var endpoint: BloomreachEndpoint? { request.flatMap(BloomreachEndpoint.init) }
    /// The Bloomreach project that the error is about; nil for other errors.
    public var projectToken: String? { owner }

    package init(
        _ code: Code, _ endpoint: BloomreachEndpoint?, _ detail: String, projectToken: String? = nil,
        status: Int? = nil, authCode: AuthErrorCode? = nil, retryAfter: TimeInterval? = nil
    ) {
        self.init(
            code, detail, request: endpoint?.rawValue, owner: projectToken, status: status,
            authCode: authCode, retryAfter: retryAfter)
    }

    /// Gives the error for a rejected customer token or signed-user token a more specific code, if one applies.
    func refined(isForPresentCustomer: Bool, isOfAnotherCustomer: Bool) -> CountersignError {
        func error(_ code: Code, _ explanation: String) -> CountersignError {
            CountersignError(
                code, endpoint, "\(explanation): \(detail)", status: status, authCode: authCode,
                retryAfter: retryAfter)
        }
        if !isForPresentCustomer {
            return error(
                .customerChanged,
                "the server rejected a customer token for ids that are no longer the customer's")
        }
        guard isOfAnotherCustomer || authCode == .subjectMismatch else { return self }
        return error(
            .tokenOfAnotherCustomer, "the customer token is for other ids than those of the customer")
    }
}
