internal import CCurl
internal import CountersignCore
internal import CountersignCurl
internal import GatewayModel

/// One request from the gateway to another server.
///
/// The address is checked when the socket is opened, so DNS rebinding cannot bypass the check. Redirects are
/// not followed and no proxy is used, because then another server would choose the address. Unless
/// `allowsPrivateAddresses` is set, only public addresses and the ports 80, 443 and from 1024 up are allowed.
/// Link-local addresses and cloud metadata services are never allowed.
package struct OutboundRequest {
    let url: String
    var body: [UInt8]?
    var headers: [(name: String, value: String)] = []
    /// PEM file with the certificates to trust instead of the system's; nil trusts the system's.
    let certificateAuthorityFile: String?
    /// The allowed URL schemes, separated by commas.
    var schemes = "https"
    let allowsPrivateAddresses: Bool
    let timeoutMilliseconds: Int
    /// The maximum size of the response's body. A longer body is a failure unless ``cutsLongAnswers`` is set.
    let maximumBytes: Int
    /// Whether a long response is truncated, for callers that only need the status.
    let cutsLongAnswers: Bool
    /// Called about once a second or more often. True cancels the request.
    let isCancelled: @Sendable () -> Bool

    package init(
        url: String, body: [UInt8]? = nil, headers: [(name: String, value: String)] = [],
        schemes: String = "https", certificateAuthorityFile: String? = nil, allowsPrivateAddresses: Bool,
        timeoutMilliseconds: Int, maximumBytes: Int,
        cutsLongAnswers: Bool = false, isCancelled: @escaping @Sendable () -> Bool = { false }
    ) {
        self.url = url
        self.body = body
        self.headers = headers
        self.schemes = schemes
        self.certificateAuthorityFile = certificateAuthorityFile
        self.allowsPrivateAddresses = allowsPrivateAddresses
        self.timeoutMilliseconds = timeoutMilliseconds
        self.maximumBytes = maximumBytes
        self.cutsLongAnswers = cutsLongAnswers
        self.isCancelled = isCancelled
    }

    package struct Answer {
        package let status: Int
        package let body: [UInt8]
        /// The `Retry-After` delay (RFC 9110, section 10.2.3); nil if missing or 0.
        package let retryAfterSeconds: Int?
    }

    /// Why the request failed. Contains no part of the URL.
    package struct Failure: Error {
        package enum Code: String, Sendable, TextEnum {
            case timeout
            case unknownHost = "unknown_host"
            case cannotConnect = "cannot_connect"
            case tls
            case forbiddenAddress = "refused_address"
            case longAnswer = "long_answer"
            case cancelled
            /// Any other failure, such as a lost connection.
            case connection
        }

        package let code: Code
        package let reason: String

        package init(_ code: Code = .connection, reason: String) {
            self.code = code
            self.reason = reason
        }

        init(_ code: CURLcode) {
            let kind: Code =
                switch code {
                case CURLE_OPERATION_TIMEDOUT: .timeout
                case CURLE_COULDNT_RESOLVE_HOST: .unknownHost
                case CURLE_COULDNT_CONNECT: .cannotConnect
                case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
                    CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR:
                    .tls
                case CURLE_ABORTED_BY_CALLBACK: .cancelled
                default: .connection
                }
            self.init(kind, reason: CurlHandle.text(of: code))
        }
    }

    /// The time limit for connecting in milliseconds, including the TLS handshake.
    static let connectTimeout = 5_000
}
