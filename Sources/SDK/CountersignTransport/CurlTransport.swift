#if os(Linux)
    internal import CCurl
    internal import CountersignCore
    internal import CountersignCurl
    internal import Foundation

    /// HTTP through libcurl. Each concurrent request has a connection of its own, which later requests reuse. At most
    /// 16 requests run at a time, on threads outside Swift's pool. Further requests wait.
    public final class CurlTransport: HTTPTransport {
        private let queue = OperationQueue()
        private let idle = Lock([CurlSession]())
        private let certificateAuthorityFile: String?
        private let compression = RequestCompression()

        /// Makes a transport.
        ///
        /// - Parameter certificateAuthorityFile: Path of a PEM file with trusted certificates; nil for the system's.
        public init(certificateAuthorityFile: String? = nil) {
            self.certificateAuthorityFile = certificateAuthorityFile
            queue.name = "countersign.transport"
            queue.maxConcurrentOperationCount = 16
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
            try await compression.send(request) { (request) async throws(HTTPTransportError) in
                try await self.perform(CurlExchange(request: request))
            }
        }

        /// Passes the body of a 200 response to `take` while it arrives, until `take` returns false. Collects other
        /// bodies in the returned response. Ends after a minute without a byte, or after `timeout`. Throws if the
        /// response was incomplete.
        package func stream(
            _ request: TransportRequest, _ take: @escaping @Sendable ([UInt8]) -> Bool
        ) async throws(HTTPTransportError) -> TransportResponse {
            try await perform(CurlExchange(request: request, take: take))
        }

        private func perform(_ exchange: CurlExchange) async throws(HTTPTransportError) -> TransportResponse {
            let result = await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    queue.addOperation { [idle, certificateAuthorityFile] in
                        let session =
                            idle.withLock { $0.popLast() }
                            ?? CurlSession(certificateAuthorityFile: certificateAuthorityFile)
                        let result = session.perform(exchange)
                        idle.withLock { $0.append(session) }
                        continuation.resume(returning: result)
                    }
                }
            } onCancel: {
                exchange.cancel()
            }
            return try result.get()
        }
    }

    /// One libcurl handle, so that its connection is reused.
    ///
    /// `@unchecked Sendable`: `CurlTransport` uses it in one operation at a time.
    private final class CurlSession: @unchecked Sendable {
        private let handle = CurlHandle()
        private let certificateAuthorityFile: String?

        init(certificateAuthorityFile: String?) {
            self.certificateAuthorityFile = certificateAuthorityFile
        }

        func perform(_ exchange: CurlExchange) -> Result<TransportResponse, HTTPTransportError> {
            guard let handle else { return .failure(HTTPTransportError(.other, "libcurl did not start")) }
            if exchange.isCancelled { return .failure(HTTPTransportError(.cancelled, "before sending")) }
            let request = exchange.request
            handle.reset(
                url: request.url.absoluteString, schemes: "http,https",
                timeoutMilliseconds: Int(min(max(request.timeout * 1_000, 1), 86_400_000)),
                certificateAuthorityFile: certificateAuthorityFile)
            var fields = request.headers.map { "\($0.name): \($0.value)" }
            // Decodes content encodings without requesting one, because some servers use them anyway.
            handle.set(CURLOPT_ACCEPT_ENCODING, "")
            if request.header("Accept-Encoding") == nil { fields.append("Accept-Encoding:") }
            if exchange.take != nil {
                handle.set(CURLOPT_LOW_SPEED_LIMIT, 1)
                handle.set(CURLOPT_LOW_SPEED_TIME, 60)
            }
            if request.method != "POST" { handle.set(CURLOPT_CUSTOMREQUEST, request.method) }
            handle.prepare(
                headers: fields, body: request.body, isCancelled: { exchange.isCancelled },
                onHeader: {
                    exchange.receive(header: $0)
                    return true
                }, onBody: exchange.receive(body:))
            let code = handle.perform()
            let isUndecodable = code == CURLE_BAD_CONTENT_ENCODING
            guard code == CURLE_OK || exchange.hasEnough || isUndecodable else {
                return .failure(exchange.error(for: code))
            }
            return .success(
                TransportResponse(
                    status: handle.status, headers: exchange.headers, body: exchange.body,
                    isTruncated: exchange.isTruncated || isUndecodable))
        }
    }

    /// State of one exchange, for libcurl's callbacks.
    ///
    /// `@unchecked Sendable`: only the thread in `CurlSession.perform` uses the `var`s.
    private final class CurlExchange: @unchecked Sendable {
        let request: TransportRequest
        /// Receives the body of a 200 response while it arrives; nil collects the body.
        let take: (@Sendable ([UInt8]) -> Bool)?
        private(set) var hasEnough = false
        private var isStreamed = false
        /// A header field that exceeds this total is ignored.
        private static let maximumHeaderBytes = 65_536
        private(set) var headers: [(name: String, value: String)] = []
        private var headerBytes = 0
        private(set) var body: [UInt8] = []
        private(set) var isTruncated = false
        private let cancelled = Lock(false)

        init(request: TransportRequest, take: (@Sendable ([UInt8]) -> Bool)? = nil) {
            self.request = request
            self.take = take
        }

        var isCancelled: Bool { cancelled.withLock { $0 } }

        func cancel() { cancelled.withLock { $0 = true } }

        func receive(header line: UnsafeRawBufferPointer) {
            let text = String(decoding: line, as: UTF8.self)
            if text.hasPrefix("HTTP/") {
                // Another status line follows an interim response such as 100.
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
            let detail = CurlHandle.text(of: code)
            let scheme = request.url.scheme?.lowercased() ?? ""
            switch code {
            case CURLE_ABORTED_BY_CALLBACK: return HTTPTransportError(.cancelled, detail)
            case CURLE_OPERATION_TIMEDOUT: return HTTPTransportError(.timedOut, detail)
            case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
                return HTTPTransportError(.cannotConnect, detail)
            // A response that is not HTTP has this code too.
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
#endif
