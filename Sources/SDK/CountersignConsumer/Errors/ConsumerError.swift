/// An error of reading events or verifying a delivery.
///
/// The description never contains a token, a secret or an event.
public struct ConsumerError: Error, Sendable, CustomStringConvertible {
    /// An error code of this library, or of a gateway that has rejected a request.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `forbidden`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The URL, the app, the name, the token or a secret is invalid: a mistake in the configuration.
        public static let invalidConfiguration = Code(rawValue: "invalid_configuration")
        /// The task was cancelled. The gateway may or may not have processed the request.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The operating system does not permit this request. Change the URL, or the ATS settings in `Info.plist`.
        public static let notPermitted = Code(rawValue: "not_permitted")
        /// The response does not come from a gateway. Check the URL, and any proxy in front of the gateway.
        public static let unexpectedAnswer = Code(rawValue: "unexpected_answer")

        /// The token is unknown or has expired. Create one with the scope `reader`.
        public static let unauthenticated = Code(rawValue: "unauthenticated")
        /// The token does not permit reading the events of this app.
        public static let forbidden = Code(rawValue: "forbidden")
        /// The app does not exist.
        public static let appNotFound = Code(rawValue: "app_not_found")
        /// The consumer does not exist. Create it: `countersign consumer create APP NAME`.
        public static let consumerNotFound = Code(rawValue: "consumer_not_found")
        /// The position belongs to another log, such as the log before a backup was restored. Use an earlier position.
        public static let positionOfAnotherLog = Code(rawValue: "position_of_another_log")
        /// The position is ahead of the log: a backup was restored. Use an earlier position.
        public static let positionAhead = Code(rawValue: "position_ahead")

        /// A `webhook-…` header field of a delivery is missing or malformed. Answer 400.
        public static let signatureMissing = Code(rawValue: "signature_missing")
        /// No signature matches one of the secrets. Answer 401 and ignore the body.
        public static let signatureInvalid = Code(rawValue: "signature_invalid")
        /// The time of signing is outside the tolerance. Answer 401 and check the clock.
        public static let timestampOutOfTolerance = Code(rawValue: "timestamp_out_of_tolerance")
    }

    /// The error code.
    public let code: Code
    /// The reason and a remedy, safe to log.
    public let detail: String
    /// The status of the gateway's response; nil without a response.
    public let status: Int?

    init(_ code: Code, _ detail: String, status: Int? = nil) {
        self.code = code
        self.detail = detail
        self.status = status
    }

    /// Returns nil for a cancellation, which ends an asynchronous sequence. Throws all other errors.
    func endOfSequence<Element>() throws(ConsumerError) -> Element? {
        if code == .cancelled { return nil }
        throw self
    }

    /// Code, status and detail.
    public var description: String {
        "\(code.rawValue)\(status.map { " (status \($0))" } ?? ""): \(detail)"
    }
}
