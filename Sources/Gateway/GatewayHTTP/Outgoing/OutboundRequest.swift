internal import CCurl
internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// One request from the gateway to another server.
///
/// The address is checked when the socket is opened, so DNS rebinding cannot bypass the check. Redirects are
/// not followed and no proxy is used, because both would choose the address elsewhere. Unless
/// `allowsPrivateAddresses` is set, only public addresses and the ports of web servers are allowed.
/// Link-local addresses and cloud metadata services are never allowed.
package struct OutboundRequest {
    let url: String
    /// The body of a POST request; nil sends GET.
    var body: [UInt8]?
    var headers: [(name: String, value: String)] = []
    /// PEM file with the certificates to trust instead of the system's; nil trusts the system's.
    let certificateAuthorityFile: String?
    /// The allowed URL schemes, separated by commas.
    var schemes = "https"
    let allowsPrivateAddresses: Bool
    let timeoutMilliseconds: Int
    /// The maximum size of the response. A longer one is a failure unless ``cutsLongAnswers`` is set.
    let maximumBytes: Int
    /// Whether a long response is truncated, for callers that only need the status.
    let cutsLongAnswers: Bool
    /// Called about once a second. True cancels the request.
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
        /// The `Retry-After` delay (RFC 9110, section 10.2.3); nil without it.
        package let retryAfterSeconds: Int?
    }

    /// Why there is no response. Contains no part of the URL.
    package struct Failure: Error {
        /// The kind of failure, a stable identifier.
        package enum Code: String, Sendable, TextEnum {
            case timeout
            case unknownHost = "unknown_host"
            case cannotConnect = "cannot_connect"
            /// The server's certificate is not valid, or TLS failed before that.
            case tls
            /// The address is not allowed.
            case refusedAddress = "refused_address"
            case longAnswer = "long_answer"
            case cancelled
            /// The connection ended early, or the response is not HTTP.
            case connection
        }

        package let code: Code
        package let reason: String

        package init(_ code: Code = .connection, reason: String) {
            self.code = code
            self.reason = reason
        }

        fileprivate init(_ code: CURLcode) {
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
            self.init(kind, reason: String(cString: curl_easy_strerror(code)))
        }
    }

    /// Milliseconds to connect, TLS included.
    private static let connectTimeout = 5_000

    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    package func perform() throws(Failure) -> Answer {
        guard Self.isReady, let handle = curl_easy_init() else {
            throw Failure(.connection, reason: "libcurl did not start")
        }
        defer { curl_easy_cleanup(handle) }
        var fields: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(fields) }
        for (name, value) in headers { fields = curl_slist_append(fields, "\(name): \(value)") }
        // No `Expect: 100-continue`: it costs a round trip.
        for field in ["User-Agent: Countersign", "Expect:"] { fields = curl_slist_append(fields, field) }
        _ = countersign_curl_set_string(handle, CURLOPT_URL, url)
        // Ids may be `..`, which RFC 3986 cannot escape.
        _ = countersign_curl_set_long(handle, CURLOPT_PATH_AS_IS, 1)
        _ = countersign_curl_set_string(handle, CURLOPT_PROTOCOLS_STR, schemes)
        _ = countersign_curl_set_string(handle, CURLOPT_PROXY, "")
        _ = countersign_curl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0)
        _ = countersign_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        _ = countersign_curl_set_long(handle, CURLOPT_TIMEOUT_MS, timeoutMilliseconds)
        _ = countersign_curl_set_long(
            handle, CURLOPT_CONNECTTIMEOUT_MS, min(Self.connectTimeout, timeoutMilliseconds))
        _ = countersign_curl_set_list(handle, CURLOPT_HTTPHEADER, fields)
        _ = countersign_curl_set_data_callback(handle, CURLOPT_WRITEFUNCTION, collect)
        _ = countersign_curl_set_socket_callback(handle, openSocket)
        _ = countersign_curl_set_progress_callback(handle, watch)
        _ = countersign_curl_set_long(handle, CURLOPT_NOPROGRESS, 0)
        if let certificateAuthorityFile {
            _ = countersign_curl_set_string(handle, CURLOPT_CAINFO, certificateAuthorityFile)
        }
        if let body {
            _ = countersign_curl_set_long(handle, CURLOPT_POST, 1)
            _ = countersign_curl_set_offset(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
        }
        var exchange = Exchange(
            allowsPrivate: allowsPrivateAddresses, maximumBytes: maximumBytes,
            cutsLongAnswers: cutsLongAnswers,
            isCancelled: isCancelled)
        let code = withUnsafeMutablePointer(to: &exchange) { exchange in
            _ = countersign_curl_set_pointer(handle, CURLOPT_OPENSOCKETDATA, exchange)
            _ = countersign_curl_set_pointer(handle, CURLOPT_WRITEDATA, exchange)
            _ = countersign_curl_set_pointer(handle, CURLOPT_XFERINFODATA, exchange)
            return (body ?? []).withUnsafeBytes { bytes in
                if body != nil {
                    _ = countersign_curl_set_pointer(handle, CURLOPT_POSTFIELDS, bytes.baseAddress)
                }
                return curl_easy_perform(handle)
            }
        }
        if let reason = exchange.refusal { throw Failure(.refusedAddress, reason: reason) }
        if exchange.isTooLong {
            throw Failure(.longAnswer, reason: "its answer is longer than \(maximumBytes) bytes")
        }
        guard code == CURLE_OK || exchange.isCut else { throw Failure(code) }
        var status = 0
        _ = countersign_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        var seconds: curl_off_t = 0
        _ = countersign_curl_get_offset(handle, CURLINFO_RETRY_AFTER, &seconds)
        return Answer(
            status: status, body: exchange.received, retryAfterSeconds: seconds > 0 ? Int(seconds) : nil)
    }

    struct Exchange {
        let allowsPrivate: Bool
        let maximumBytes: Int
        var cutsLongAnswers = false
        var isCancelled: @Sendable () -> Bool = { false }
        var received: [UInt8] = []
        var isTooLong = false
        /// Whether a long response was truncated.
        var isCut = false
        var refusal: String?

        /// Why a connection to the address is not allowed; otherwise nil.
        func refusal(of target: NetworkAddress?, port: UInt16) -> String? {
            guard let target else { return "its address is neither IPv4 nor IPv6" }
            return PrivateAddressGuard.rejection(
                of: target, port: port, allowsPrivateAddresses: allowsPrivate)
        }
    }
}

private let openSocket: countersign_curl_socket_callback = { context, _, address in
    guard let context, let address else { return CURL_SOCKET_BAD }
    let exchange = context.assumingMemoryBound(to: OutboundRequest.Exchange.self)
    guard let target = countersign_curl_address(address) else { return CURL_SOCKET_BAD }
    let length = Int(address.pointee.addrlen)
    if let refusal = exchange.pointee.refusal(
        of: NetworkAddress(target, length: length), port: NetworkAddress.port(target, length: length))
    {
        exchange.pointee.refusal = refusal
        return CURL_SOCKET_BAD
    }
    return countersign_curl_open_socket(address)
}

private let collect: countersign_curl_data_callback = { bytes, size, count, context in
    guard let bytes, let context else { return 0 }
    let exchange = context.assumingMemoryBound(to: OutboundRequest.Exchange.self)
    let chunk = UnsafeRawBufferPointer(start: bytes, count: size * count)
    let room = exchange.pointee.maximumBytes - exchange.pointee.received.count
    guard chunk.count <= room else {
        if exchange.pointee.cutsLongAnswers {
            exchange.pointee.received.append(contentsOf: chunk.prefix(room))
            exchange.pointee.isCut = true
        } else {
            exchange.pointee.isTooLong = true
        }
        return 0
    }
    exchange.pointee.received.append(contentsOf: chunk)
    return chunk.count
}

private let watch: countersign_curl_progress_callback = { context, _, _, _, _ in
    guard let context else { return 0 }
    return context.assumingMemoryBound(to: OutboundRequest.Exchange.self).pointee.isCancelled() ? 1 : 0
}
