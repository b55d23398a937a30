public import CountersignCore

/// The result of one refresh request.
public struct AuthorizationEvent: Sendable, Hashable {
    /// Whether a new access token was received and stored.
    public let isSuccess: Bool
    /// The status of the response; 0 without a response.
    public let status: Int
    /// The response's JSON object; empty without a response or for other content. It may hold tokens.
    public let response: JSONObject
    /// The error; nil on success. Safe to log.
    public let error: String?
    /// The server's description for people (`error_description`, RFC 6749, section 5.2), up to 500 characters. Do not
    /// log it: it may contain personal data.
    public let errorDescription: String?
}

extension AuthorizationEvent: CustomStringConvertible, CustomReflectable {
    /// Status, error and the names in the response, without values.
    public var description: String {
        "AuthorizationEvent(\(isSuccess ? "success" : "failure"), status: \(status), "
            + "response: [\(response.keys.sorted().joined(separator: ", "))], error: \(error ?? "none"))"
    }

    /// Keeps the tokens out of `dump`: the only child is `description`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
