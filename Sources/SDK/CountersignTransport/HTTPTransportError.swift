/// The reason why there was no response. Each failure except `notPermitted` may be temporary.
///
/// The description never contains a header, a body or the query of a URL.
public struct HTTPTransportError: Error, Sendable, CustomStringConvertible {
    /// An error code.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `timed_out`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The server's name was not found, or the connection was not accepted.
        public static let cannotConnect = Code(rawValue: "cannot_connect")
        /// The connection was lost before the response was complete.
        public static let connectionLost = Code(rawValue: "connection_lost")
        /// `TransportRequest.timeout` has passed.
        public static let timedOut = Code(rawValue: "timed_out")
        /// The server's certificate is not trusted, or the TLS handshake failed.
        public static let tls = Code(rawValue: "tls")
        /// The response is too long. The SDK's own transports truncate it instead (`TransportResponse.isTruncated`).
        public static let responseTooLarge = Code(rawValue: "response_too_large")
        /// The task was cancelled.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The system never permits this request: plain HTTP under App Transport Security, or a URL that the network
        /// library does not support. Change the URL or the `Info.plist`. The SDK treats it as a configuration
        /// problem.
        public static let notPermitted = Code(rawValue: "not_permitted")
        /// Another failure.
        public static let other = Code(rawValue: "other")
    }

    /// The error code.
    public let code: Code
    /// The message of the network library. Safe to log.
    public let detail: String

    /// Makes an error.
    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The code and the detail.
    public var description: String { "\(code.rawValue): \(detail)" }
}

extension HTTPTransportError {
    /// The error of a `URLSession`, by the number of its `URLError.Code`.
    init(urlErrorCode number: Int) {
        let code: Code =
            switch number {
            // timedOut
            case -1001: .timedOut
            // cancelled
            case -999: .cancelled
            // cannotFindHost, cannotConnectToHost, dnsLookupFailed, notConnectedToInternet; internationalRoamingOff,
            // callIsActive, dataNotAllowed
            case -1003, -1004, -1006, -1009, -1020 ... -1018: .cannotConnect
            // networkConnectionLost
            case -1005: .connectionLost
            // secureConnectionFailed to clientCertificateRequired
            case -1206 ... -1200: .tls
            // appTransportSecurityRequiresSecureConnection, unsupportedURL, badURL
            case -1022, -1002, -1000: .notPermitted
            default: .other
            }
        self.init(code, "URLError \(number)")
    }
}
