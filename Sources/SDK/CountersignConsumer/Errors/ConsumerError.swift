/// Why events could not be read or a delivery was not accepted.
///
/// The description never holds a token, a secret or an event.
public struct ConsumerError: Error, Sendable, CustomStringConvertible {
    /// What went wrong: a word of this library or, where the gateway has refused a request, the gateway's.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `forbidden`.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The address, the app, the name, the token or a secret cannot be right: a mistake in the configuration.
        public static let invalidConfiguration = Code(rawValue: "invalid_configuration")
        /// The task was cancelled. Whether the gateway has done what it was asked is unknown.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The system does not let the app make this request. Another address or another `Info.plist` helps.
        public static let notPermitted = Code(rawValue: "not_permitted")
        /// What answered is not such a gateway. Look at the address, and at any proxy in front of it.
        public static let unexpectedAnswer = Code(rawValue: "unexpected_answer")

        /// There is no such token, or it has expired. Make one with the scope `reader`.
        public static let unauthenticated = Code(rawValue: "unauthenticated")
        /// The token does not read the events of this app.
        public static let forbidden = Code(rawValue: "forbidden")
        /// There is no such app.
        public static let appNotFound = Code(rawValue: "app_not_found")
        /// There is no such consumer. Create it: `countersign consumer create APP NAME`.
        public static let consumerNotFound = Code(rawValue: "consumer_not_found")
        /// The position is of another log, or ahead of it: a backup was restored. Go on from an earlier position.
        public static let positionOfAnotherLog = Code(rawValue: "position_of_another_log")
        /// The position is ahead of the log: a backup was restored. Go on from an earlier position.
        public static let positionAhead = Code(rawValue: "position_ahead")

        /// A delivery lacks one of its three header fields, or one cannot be read. Answer 400.
        public static let signatureMissing = Code(rawValue: "signature_missing")
        /// No signature is that of one of the secrets. Answer 401 and do nothing with the body.
        public static let signatureInvalid = Code(rawValue: "signature_invalid")
        /// A delivery was signed too long ago or ahead of this clock. Answer 401; is the clock right?
        public static let timestampOutOfTolerance = Code(rawValue: "timestamp_out_of_tolerance")
    }

    /// What went wrong.
    public let code: Code
    /// Why, and what to do: safe to log.
    public let detail: String
    /// The status of the gateway's answer; nil if there was none.
    public let status: Int?

    init(_ code: Code, _ detail: String, status: Int? = nil) {
        self.code = code
        self.detail = detail
        self.status = status
    }

    /// Code, status and detail.
    public var description: String {
        "\(code.rawValue)\(status.map { " (status \($0))" } ?? ""): \(detail)"
    }
}
