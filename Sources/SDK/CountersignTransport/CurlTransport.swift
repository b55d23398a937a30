#if os(Linux)
    internal import CCurl
    internal import Foundation

    /// HTTP through libcurl.
    ///
    /// One connection is kept alive and used for one request after another; the calls wait on their own thread, never
    /// on Swift's pool.
    public final class CurlTransport: HTTPTransport {
        private let queue = DispatchQueue(label: "countersign.transport")
        private let session: CurlSession

        /// Makes a transport.
        ///
        /// - Parameter certificateAuthorityFile: Path of a PEM file with the certificates to trust instead of the
        ///   system's; nil for the system's.
        public init(certificateAuthorityFile: String? = nil) {
            session = CurlSession(certificateAuthorityFile: certificateAuthorityFile)
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
            try await perform(CurlExchange(request: request))
        }

        /// Sends `request` and hands the body of an answer of 200 on as it comes; the body of any other is read whole.
        ///
        /// A minute without a byte ends it, `timeout` does in any case. Returns the answer, without what was handed on.
        /// Throws when there was no whole answer.
        package func stream(
            _ request: TransportRequest, _ take: @escaping @Sendable ([UInt8]) -> Bool
        ) async throws(HTTPTransportError) -> TransportResponse {
            try await perform(CurlExchange(request: request, take: take))
        }

        private func perform(_ exchange: CurlExchange) async throws(HTTPTransportError) -> TransportResponse {
            let result = await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    queue.async { [session] in continuation.resume(returning: session.perform(exchange)) }
                }
            } onCancel: {
                exchange.cancel()
            }
            return try result.get()
        }
    }

    /// One easy handle, so that its connection is used again.
    ///
    /// `@unchecked Sendable`: only `CurlTransport.queue`, which is serial, calls `perform`.
    private final class CurlSession: @unchecked Sendable {
        private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

        private let handle: UnsafeMutableRawPointer?
        private let certificateAuthorityFile: String?

        init(certificateAuthorityFile: String?) {
            handle = Self.isReady ? curl_easy_init() : nil
            self.certificateAuthorityFile = certificateAuthorityFile
        }

        deinit {
            if let handle { curl_easy_cleanup(handle) }
        }

        func perform(_ exchange: CurlExchange) -> Result<TransportResponse, HTTPTransportError> {
            guard let handle else { return .failure(HTTPTransportError(.other, "libcurl did not start")) }
            if exchange.isCancelled { return .failure(HTTPTransportError(.cancelled, "before sending")) }
            curl_easy_reset(handle)
            let request = exchange.request
            var list: UnsafeMutablePointer<curl_slist>?
            defer { curl_slist_free_all(list) }
            // No `Expect: 100-continue`: it costs a round trip.
            var fields = request.headers.map { "\($0.name): \($0.value)" } + ["Expect:"]
            // Content encodings are decoded, since some servers use them unasked, but not asked for.
            _ = countersign_curl_set_string(handle, CURLOPT_ACCEPT_ENCODING, "")
            if request.header("Accept-Encoding") == nil { fields.append("Accept-Encoding:") }
            for field in fields { list = curl_slist_append(list, field) }
            _ = countersign_curl_set_string(handle, CURLOPT_URL, request.url.absoluteString)
            // An id that is `..` is an id (RFC 3986 has no other way to write it).
            _ = countersign_curl_set_long(handle, CURLOPT_PATH_AS_IS, 1)
            _ = countersign_curl_set_string(handle, CURLOPT_PROTOCOLS_STR, "http,https")
            _ = countersign_curl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0)
            _ = countersign_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
            _ = countersign_curl_set_long(handle, CURLOPT_TIMEOUT_MS, Self.milliseconds(request.timeout))
            if exchange.take != nil {
                _ = countersign_curl_set_long(handle, CURLOPT_LOW_SPEED_LIMIT, 1)
                _ = countersign_curl_set_long(handle, CURLOPT_LOW_SPEED_TIME, 60)
            }
            _ = countersign_curl_set_list(handle, CURLOPT_HTTPHEADER, list)
            _ = countersign_curl_set_long(handle, CURLOPT_POST, 1)
            if request.method != "POST" {
                _ = countersign_curl_set_string(handle, CURLOPT_CUSTOMREQUEST, request.method)
            }
            _ = countersign_curl_set_offset(
                handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.count))
            if let certificateAuthorityFile {
                _ = countersign_curl_set_string(handle, CURLOPT_CAINFO, certificateAuthorityFile)
            }
            let context = Unmanaged.passUnretained(exchange).toOpaque()
            _ = countersign_curl_set_data_callback(handle, CURLOPT_WRITEFUNCTION, receiveBody)
            _ = countersign_curl_set_pointer(handle, CURLOPT_WRITEDATA, context)
            _ = countersign_curl_set_data_callback(handle, CURLOPT_HEADERFUNCTION, receiveHeader)
            _ = countersign_curl_set_pointer(handle, CURLOPT_HEADERDATA, context)
            _ = countersign_curl_set_progress_callback(handle, checkProgress)
            _ = countersign_curl_set_pointer(handle, CURLOPT_XFERINFODATA, context)
            _ = countersign_curl_set_long(handle, CURLOPT_NOPROGRESS, 0)

            let code = request.body.withUnsafeBytes { body in
                // libcurl reads the body where it is; an empty buffer may have no address.
                _ = countersign_curl_set_pointer(
                    handle, CURLOPT_POSTFIELDS, body.baseAddress ?? UnsafeRawPointer(context))
                return curl_easy_perform(handle)
            }
            let isUndecodable = code == CURLE_BAD_CONTENT_ENCODING
            guard code == CURLE_OK || exchange.hasEnough || isUndecodable else {
                return .failure(exchange.error(for: code))
            }
            var status = 0
            _ = countersign_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
            return .success(
                TransportResponse(
                    status: status, headers: exchange.headers, body: exchange.body,
                    isTruncated: exchange.isTruncated || isUndecodable))
        }

        private static func milliseconds(_ seconds: TimeInterval) -> Int {
            Int(min(max(seconds * 1_000, 1), 86_400_000))
        }
    }

    /// State of one exchange, for libcurl's callbacks.
    ///
    /// `@unchecked Sendable`: `cancelled` has a lock; the rest is touched only by the thread in `CurlSession.perform`.
    private final class CurlExchange: @unchecked Sendable {
        let request: TransportRequest
        /// Takes the body of an answer of 200 as it comes; nil collects it.
        let take: (@Sendable ([UInt8]) -> Bool)?
        /// Whether libcurl was told to read no more of the body.
        private(set) var hasEnough = false
        private var isStreamed = false
        /// Header fields beyond this are ignored.
        private static let maximumHeaderBytes = 65_536
        private(set) var headers: [(name: String, value: String)] = []
        private var headerBytes = 0
        private(set) var body: [UInt8] = []
        private(set) var isTruncated = false
        private let lock = NSLock()
        private var cancelled = false

        init(request: TransportRequest, take: (@Sendable ([UInt8]) -> Bool)? = nil) {
            self.request = request
            self.take = take
        }

        var isCancelled: Bool {
            lock.lock()
            defer { lock.unlock() }
            return cancelled
        }

        func cancel() {
            lock.lock()
            defer { lock.unlock() }
            cancelled = true
        }

        func receive(header line: UnsafeRawBufferPointer) -> Bool {
            let text = String(decoding: line, as: UTF8.self)
            if text.hasPrefix("HTTP/") {
                // Another status line follows an interim answer such as 100.
                headers.removeAll()
                headerBytes = 0
                isStreamed = take != nil && text.split(separator: " ").dropFirst().first == "200"
            } else if headerBytes + line.count <= Self.maximumHeaderBytes,
                let colon = text.firstIndex(of: ":")
            {
                headerBytes += line.count
                let value = text[text.index(after: colon)...]
                headers.append(
                    (String(text[..<colon]), value.trimmingCharacters(in: .whitespacesAndNewlines)))
            }
            return true
        }

        func receive(body bytes: UnsafeRawBufferPointer) -> Bool {
            if isStreamed, let take {
                hasEnough = !take(Array(bytes))
                return !hasEnough
            }
            let space = request.maximumResponseBytes - body.count
            body.append(contentsOf: bytes.prefix(space))
            isTruncated = bytes.count > space
            hasEnough = isTruncated
            return !hasEnough
        }

        func error(for code: CURLcode) -> HTTPTransportError {
            let detail = String(cString: curl_easy_strerror(code))
            let scheme = request.url.scheme?.lowercased() ?? ""
            switch code {
            case CURLE_ABORTED_BY_CALLBACK: return HTTPTransportError(.cancelled, detail)
            case CURLE_OPERATION_TIMEDOUT: return HTTPTransportError(.timedOut, detail)
            case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
                return HTTPTransportError(.cannotConnect, detail)
            // An answer that is not HTTP has this code too.
            case CURLE_UNSUPPORTED_PROTOCOL where scheme == "http" || scheme == "https":
                return HTTPTransportError(.other, "the answer is not HTTP")
            case CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT:
                return HTTPTransportError(.notPermitted, detail)
            case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE:
                return HTTPTransportError(.connectionLost, detail)
            case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
                CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER:
                return HTTPTransportError(.tls, detail)
            default: return HTTPTransportError(.other, detail)
            }
        }
    }

    private let receiveBody: countersign_curl_data_callback = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        let exchange = Unmanaged<CurlExchange>.fromOpaque(context).takeUnretainedValue()
        let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
        return exchange.receive(body: buffer) ? buffer.count : 0
    }

    private let receiveHeader: countersign_curl_data_callback = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        let exchange = Unmanaged<CurlExchange>.fromOpaque(context).takeUnretainedValue()
        let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
        return exchange.receive(header: buffer) ? buffer.count : 0
    }

    private let checkProgress: countersign_curl_progress_callback = { context, _, _, _, _ in
        guard let context else { return 0 }
        return Unmanaged<CurlExchange>.fromOpaque(context).takeUnretainedValue().isCancelled ? 1 : 0
    }
#endif
