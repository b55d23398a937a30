#if canImport(Darwin)
    internal import Foundation

    /// HTTP through `URLSession`, in its own session without cookies, cache or stored credentials.
    public final class URLSessionTransport: HTTPTransport {
        private let session: URLSession
        private let rejection = RedirectBlocker()
        private let compression = RequestCompression()

        /// Makes a transport.
        ///
        /// - Parameter allowsConstrainedNetworkAccess: False to send nothing in Low Data Mode. Requests then fail as
        ///   `cannot_connect`, and the SDK retries them later.
        public init(allowsConstrainedNetworkAccess: Bool = true) {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpShouldSetCookies = false
            configuration.urlCache = nil
            configuration.urlCredentialStorage = nil
            configuration.allowsConstrainedNetworkAccess = allowsConstrainedNetworkAccess
            session = URLSession(configuration: configuration)
        }

        deinit {
            // A session retains itself and its connections until it is invalidated.
            session.finishTasksAndInvalidate()
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
            try await compression.send(request) { (request) async throws(HTTPTransportError) in
                try await self.perform(request, take: nil)
            }
        }

        /// Passes the body of a 200 response to `take` while it arrives, until `take` returns false. Collects other
        /// bodies in the returned response. Throws if the response was incomplete.
        package func stream(
            _ request: TransportRequest, _ take: @escaping @Sendable ([UInt8]) -> Bool
        ) async throws(HTTPTransportError) -> TransportResponse {
            try await perform(request, take: take)
        }

        // Limits the whole request, because the `timeoutInterval` of a `URLRequest` restarts with each byte.
        private func perform(
            _ request: TransportRequest, take: (@Sendable ([UInt8]) -> Bool)?
        ) async throws(HTTPTransportError) -> TransportResponse {
            try await withTimeLimit(request.timeout) { () async throws(HTTPTransportError) in
                do {
                    return try await self.exchange(request, take: take)
                } catch let error as HTTPTransportError {
                    throw error
                } catch {
                    throw Self.transportError(for: error)
                }
            }
        }

        private func exchange(
            _ request: TransportRequest, take: (@Sendable ([UInt8]) -> Bool)?
        ) async throws -> TransportResponse {
            var wire = URLRequest(url: request.url, timeoutInterval: request.timeout)
            wire.httpMethod = request.method
            wire.httpBody = Data(request.body)
            for field in request.headers { wire.addValue(field.value, forHTTPHeaderField: field.name) }
            let (bytes, answer) = try await session.bytes(for: wire, delegate: rejection)
            guard let answer = answer as? HTTPURLResponse else {
                throw HTTPTransportError(.other, "the answer is not HTTP")
            }
            var body: [UInt8] = []
            var isTruncated = false
            let isStreamed = take != nil && answer.statusCode == 200
            do {
                for try await byte in bytes {
                    guard body.count < request.maximumResponseBytes else {
                        isTruncated = true
                        break
                    }
                    body.append(byte)
                    // Passes whole lines to `take`, because the sequence of bytes has no other boundaries.
                    guard isStreamed, byte == 0x0A, let take else { continue }
                    let piece = body
                    body = []
                    if !take(piece) { break }
                }
            } catch let error as URLError where Self.isUndecodable(error) {
                isTruncated = true
            }
            // Cancels the task. Otherwise `URLSession` would download the remaining body.
            bytes.task.cancel()
            if isStreamed, !body.isEmpty, let take { _ = take(body) }
            if isStreamed { body = [] }
            let headers = answer.allHeaderFields.compactMap {
                name, value -> (name: String, value: String)? in
                guard let name = name as? String, let value = value as? String else { return nil }
                return (name, value)
            }
            return TransportResponse(
                status: answer.statusCode, headers: headers, body: body, isTruncated: isTruncated)
        }

        /// The body does not have the content encoding that its header names.
        private static func isUndecodable(_ error: URLError) -> Bool {
            [-1015, -1016].contains(error.code.rawValue)
        }

        private static func transportError(for error: any Error) -> HTTPTransportError {
            if error is CancellationError { return HTTPTransportError(.cancelled, "the task was cancelled") }
            guard let error = error as? URLError else {
                return HTTPTransportError(.other, "\(type(of: error))")
            }
            return HTTPTransportError(urlErrorCode: error.code.rawValue)
        }
    }

    private final class RedirectBlocker: NSObject, URLSessionTaskDelegate {
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest
        ) async -> URLRequest? {
            nil
        }
    }
#endif
