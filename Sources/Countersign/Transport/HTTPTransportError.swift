/// Why there was no whole answer. Each code is worth another try later.
///
/// The description never holds a header, a body or the query of a URL.
public struct HTTPTransportError: Error, Sendable, CustomStringConvertible {
    /// What went wrong.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `timed_out`.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The server's name was not found, or nothing took the connection.
        public static let cannotConnect = Code(rawValue: "cannot_connect")
        /// The connection broke before the answer was whole.
        public static let connectionLost = Code(rawValue: "connection_lost")
        /// `HTTPRequest.timeout` ran out.
        public static let timedOut = Code(rawValue: "timed_out")
        /// The server's certificate is not trusted, or TLS could not be agreed on.
        public static let tls = Code(rawValue: "tls")
        /// The answer is longer than `HTTPRequest.maximumResponseBytes`.
        public static let responseTooLarge = Code(rawValue: "response_too_large")
        /// The task was cancelled.
        public static let cancelled = Code(rawValue: "cancelled")
        /// Something else.
        public static let other = Code(rawValue: "other")
    }

    /// What went wrong.
    public let code: Code
    /// The words of the network library: safe to log.
    public let detail: String

    /// Makes an error.
    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The code and the detail.
    public var description: String { "\(code.rawValue): \(detail)" }
}
