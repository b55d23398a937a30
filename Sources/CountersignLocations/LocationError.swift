/// What went wrong with locations.
///
/// The description never holds a token, a header value or a location.
public struct LocationError: Error, Sendable, CustomStringConvertible {
    /// What went wrong.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// A stable word.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The record has no coordinates, or ones that cannot be. It is not stored.
        public static let invalidLocation = Code(rawValue: "invalid_location")
        /// There is no `http` or `https` URL to send to. Set one.
        public static let invalidURL = Code(rawValue: "invalid_url")
        /// The server could not be reached; the records stay and are sent later.
        public static let networkConnection = Code(rawValue: "network_connection")
        /// Another process that shares the records is sending them.
        public static let syncInProgress = Code(rawValue: "sync_in_progress")
        /// The server did not take the records, or there is no token that it takes; the records stay.
        public static let response = Code(rawValue: "response")
        /// The server answered with a redirect; those are not followed. Set the URL that it names.
        public static let redirect = Code(rawValue: "redirect")
        /// Nothing is stored, since `maxRecordsToPersist` is 0.
        public static let notPersisted = Code(rawValue: "not_persisted")
        /// There is no access token, or none that can be used now; `AuthorizationState` says why.
        public static let notAuthorized = Code(rawValue: "not_authorized")
    }

    /// What went wrong.
    public let code: Code
    /// More about it: safe to log.
    public let detail: String

    init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The code and the detail.
    public var description: String { "\(code.rawValue): \(detail)" }
}
