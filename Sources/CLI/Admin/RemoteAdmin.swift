internal import CountersignCore
internal import CountersignTransport
internal import Foundation

struct RemoteAdmin: AdminClient {
    struct Server: Sendable {
        /// A URL such as `https://collect.example`, without a slash at the end.
        var url: String
        /// The path of the certificates to trust; nil trusts the system's.
        var certificateAuthorityFile: String?
        /// Whether to send the token over plain http to another machine.
        var allowsPlainHTTP = false

        /// Throws `usage` if `url` is not a server's URL, or uses plain http to another machine without permission.
        /// Errors omit passwords.
        func checked() throws(CommandError) -> Server {
            guard let parts = URLComponents(string: url), let host = parts.host, !host.isEmpty,
                parts.scheme == "https" || parts.scheme == "http", parts.query == nil, parts.user == nil
            else {
                throw CommandError(
                    .usage, "the server needs a URL such as https://collect.example, without user and query")
            }
            guard parts.scheme == "https" || Loopback.isHost(host) || allowsPlainHTTP else {
                throw CommandError(
                    .usage, "plain http to \(host) would send the API token unencrypted",
                    hint: "use https, or pass --allow-plain-http on a network that you trust")
            }
            var server = self
            if url.hasSuffix("/") { server.url = String(url.dropLast()) }
            return server
        }
    }

    let server: Server
    private let token: String
    /// Receives requests and response statuses, without the token and bodies.
    private let note: @Sendable (String) -> Void
    private let transport: SystemTransport

    var location: String { server.url }

    /// Throws `usage` for a server to which the token must not be sent, and `notFound` without the CA file.
    init(
        _ server: Server, token: String, note: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(CommandError) {
        self.server = try server.checked()
        self.token = token
        self.note = note
        transport = try .trusting(server.certificateAuthorityFile)
    }

    private func request(
        _ request: AdminRequest, accept: String, timeout: TimeInterval, lastEventID: String? = nil
    ) throws(CommandError) -> TransportRequest {
        let text =
            server.url + request.root + request.encodedPath + (request.encodedQuery.map { "?" + $0 } ?? "")
        guard let url = URL(string: text), token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw CommandError(.usage, "the API token contains invalid characters")
        }
        var headers = [
            (name: "Authorization", value: "Bearer " + token), (name: "Accept", value: accept),
        ]
        if request.body != nil { headers.append((name: "Content-Type", value: "application/json")) }
        if let tag = request.ifMatch { headers.append((name: "If-Match", value: tag)) }
        if let lastEventID { headers.append((name: "Last-Event-ID", value: lastEventID)) }
        return TransportRequest(
            method: request.method, url: url, headers: headers, body: request.body?.bytes ?? [],
            timeout: timeout, maximumResponseBytes: 256 << 20)
    }

    func send(_ request: AdminRequest) async throws -> AdminAnswer {
        // A backup takes as long as a copy of all data.
        let seconds: TimeInterval = request.path.first == "backups" ? 86_400 : 60
        do {
            let sent = try self.request(request, accept: "application/json", timeout: seconds)
            let start = ContinuousClock.now
            let response = try await transport.send(sent)
            let milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
            let id = response.header("X-Request-Id") ?? "none"
            note(
                "\(sent.method) \(sent.url): \(response.status) in \(Int(milliseconds)) ms, request id \(id)")
            if response.isTruncated { throw HTTPTransportError(.responseTooLarge, "the answer is too long") }
            return try AdminAnswer(
                status: response.status, tag: response.header("ETag"), bytes: response.body,
                root: request.root)
        } catch let error as HTTPTransportError {
            throw unavailable(error)
        }
    }

    func stream(
        _ request: AdminRequest, _ take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws -> [(name: String, value: String)] {
        try await stream(request, accept: "*/*", take)
    }

    /// Streams with a media type, the id of the last server-sent event and a time limit in seconds.
    @discardableResult func stream(
        _ request: AdminRequest, accept: String, lastEventID: String? = nil, timeout: TimeInterval = 86_400,
        _ take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws -> [(name: String, value: String)] {
        let sent = try self.request(request, accept: accept, timeout: timeout, lastEventID: lastEventID)
        let failure = Lock<(any Error)?>(nil)
        do {
            let response = try await transport.stream(sent) { bytes in
                do {
                    try take(bytes)
                    return true
                } catch {
                    failure.withLock { $0 = error }
                    return false
                }
            }
            if let error = failure.withLock({ $0 }) { throw error }
            if response.status != 200 {
                _ = try AdminAnswer(
                    status: response.status, tag: nil, bytes: response.body, root: request.root)
            }
            return response.headers
        } catch let error as HTTPTransportError {
            throw unavailable(error, isDownload: true)
        }
    }

    private func unavailable(_ error: HTTPTransportError, isDownload: Bool = false) -> CommandError {
        if error.code == .tls {
            return CommandError(
                .unavailable, "the certificate of \(server.url) is not trusted: \(error.detail)",
                hint: "give the CA's certificate with --ca-file")
        }
        if error.code == .cancelled { return CommandError(.interrupted, "interrupted") }
        if isDownload, error.code == .connectionLost {
            return CommandError(
                .unavailable, "the answer of \(server.url) is incomplete: \(error.detail)",
                hint: "try again; an export also fails while a transaction stays open in the database")
        }
        return CommandError(
            .unavailable, "the gateway at \(server.url) does not answer: \(error.detail)",
            hint: "is it running, and is this its URL?")
    }
}
