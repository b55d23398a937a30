public import CountersignCore

/// What came of one request for a new access token.
public struct AuthorizationEvent: Sendable, Hashable {
    /// True if there is a new access token, and it is on disk.
    public let isSuccess: Bool
    /// The status of the answer; 0 if there was none.
    public let status: Int
    /// The answer's JSON object; empty if it was no JSON object or if there was no answer. It may hold tokens.
    public let response: JSONObject
    /// What went wrong; nil on success. Safe to log.
    public let error: String?
    /// What the server says about it to people (`error_description`, RFC 6749, section 5.2), up to 500 characters; nil if
    /// it says nothing. Not to be logged: it may name a person.
    public let errorDescription: String?

    init(
        isSuccess: Bool, status: Int, response: JSONObject, error: String?,
        errorDescription: String? = nil
    ) {
        self.isSuccess = isSuccess
        self.status = status
        self.response = response
        self.error = error
        self.errorDescription = errorDescription
    }
}

extension AuthorizationEvent: CustomStringConvertible, CustomReflectable {
    /// Status, error and the names in the answer, never their values.
    public var description: String {
        "AuthorizationEvent(\(isSuccess ? "success" : "failure"), status: \(status), "
            + "response: [\(response.keys.sorted().joined(separator: ", "))], error: \(error ?? "none"))"
    }

    /// The same, for `dump`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
