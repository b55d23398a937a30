internal import CountersignCore
internal import CountersignDelivery
internal import CountersignTransport
internal import Foundation

/// Sends requests for one app's events to the gateway.
struct GatewayConnection: Sendable {
    enum Outcome: Sendable {
        case answer([UInt8])
        /// Temporary, with the gateway's minimum delay in seconds if given.
        case passing(retryAfter: TimeInterval?)
        case failure(ConsumerError)
    }

    /// The maximum length of a response. A page ends with the event that reaches 1 MiB, and this event may be long.
    private static let longestAnswer = 32 * 1_048_576
    /// Delays of at most half a second, later half a minute: readers need events soon, and a gateway has few readers.
    private static let retries = RetryPolicy(baseDelay: 0.5, maximumDelay: 30)
    /// The minimum seconds between two empty responses, because a gateway that is shutting down replies at once.
    private static let leastWait: TimeInterval = 1
    /// Characters that need no escaping in queries.
    private static let plain = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")

    private let base: URL
    private let token: String
    private let transport: any HTTPTransport
    private let clock: any ClientClock
    private let fraction: @Sendable () -> Double

    init(
        endpoint: URL, app: String, token: String, transport: (any HTTPTransport)?,
        clock: any ClientClock, fraction: @escaping @Sendable () -> Double
    ) throws(ConsumerError) {
        guard ["http", "https"].contains(endpoint.scheme?.lowercased()), endpoint.host?.isEmpty == false,
            endpoint.query == nil, endpoint.fragment == nil
        else { throw Self.invalid("endpoint", "must be an http or https URL without a query") }
        guard Self.isName(app) else {
            throw Self.invalid("app", "must be the app's id: 1 to 64 of A-Z a-z 0-9 . _ -")
        }
        guard !token.isEmpty, token.utf8.count <= 512, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw Self.invalid("token", "must be an API token with the scope reader, without spaces") }
        base = endpoint.appendingPathComponent("v1/apps/\(app)")
        self.token = token
        self.transport = transport ?? makeDefaultTransport()
        self.clock = clock
        self.fraction = fraction
    }

    /// Valid in a path without escaping.
    static func isName(_ text: String) -> Bool {
        1...64 ~= text.utf8.count
            && text.utf8.allSatisfy { $0.isASCIIAlphanumeric(or: "._-") } && text != "." && text != ".."
    }

    static func invalid(_ what: String, _ rule: String) -> ConsumerError {
        ConsumerError(.invalidConfiguration, "\(what) \(rule)")
    }

    static let unreadable = ConsumerError(
        .unexpectedAnswer, "the response cannot be read; check that the URL is a gateway's, and its version"
    )

    /// Requests events. Returns an empty response after at least a second, unless the gateway has more events.
    func events(_ request: GatewayRequest) async throws(ConsumerError) -> EventDocument {
        let began = clock.uptime
        guard let document = EventDocument(try await answer(to: request)) else { throw Self.unreadable }
        let missing = Self.leastWait - (clock.uptime - began)
        if document.isEmpty, document.members.has_more != true, missing > 0 { try await sleep(missing) }
        return document
    }

    /// Retries temporary failures with increasing delays.
    ///
    /// - Throws: A permanent error, or `cancelled`.
    func answer(
        to request: GatewayRequest, ignoresCancellation: Bool = false
    ) async throws(ConsumerError) -> [UInt8] {
        var failures = 0
        while true {
            switch await outcome(of: request, ignoresCancellation: ignoresCancellation) {
            case .answer(let bytes): return bytes
            case .failure(let error): throw error
            case .passing(let seconds):
                failures += 1
                try await pause(afterFailure: failures, atLeast: seconds)
            }
        }
    }

    func pause(afterFailure failures: Int, atLeast seconds: TimeInterval? = nil) async throws(ConsumerError) {
        try await sleep(
            Self.retries.delay(afterFailure: failures, serverDelay: seconds, fraction: fraction()))
    }

    private func sleep(_ seconds: TimeInterval) async throws(ConsumerError) {
        do {
            try await clock.sleep(until: clock.uptime + seconds)
        } catch {
            throw ConsumerError(.cancelled, "the task was cancelled")
        }
    }

    func outcome(of request: GatewayRequest, ignoresCancellation: Bool = false) async -> Outcome {
        if ignoresCancellation { return await Task { await outcome(of: request) }.value }
        let response: TransportResponse
        do throws(HTTPTransportError) {
            response = try await transport.send(wire(request))
        } catch {
            return Self.outcome(of: error)
        }
        if response.status == 200 {
            return response.isTruncated ? .failure(Self.unreadable) : .answer(response.body)
        }
        if response.status == 408 || response.status == 429 || response.status >= 500 {
            return .passing(
                retryAfter: ServerAnswer.retryAfter(
                    in: response, serverTime: ServerAnswer.serverTime(in: response)))
        }
        return .failure(Self.rejection(response.redacting(token)))
    }

    private static func rejection(_ response: TransportResponse) -> ConsumerError {
        let members = JSONDocument.object(response.body) ?? [:]
        guard case .string(let code) = members["code"] else {
            return ConsumerError(
                .unexpectedAnswer, "the response is not a gateway's; check the URL and proxies",
                status: response.status)
        }
        var reason = "the gateway has rejected the request"
        if case .string(let text) = members["reason"] { reason = text }
        return ConsumerError(.init(rawValue: code), String(reason.prefix(300)), status: response.status)
    }

    private static func outcome(of error: HTTPTransportError) -> Outcome {
        switch error.code {
        case .cancelled: .failure(ConsumerError(.cancelled, "the task was cancelled"))
        case .notPermitted: .failure(ConsumerError(.notPermitted, error.detail))
        case .responseTooLarge: .failure(unreadable)
        default: .passing(retryAfter: nil)
        }
    }

    private func wire(_ request: GatewayRequest) -> TransportRequest {
        var url = base.appendingPathComponent(request.path)
        if !request.query.isEmpty, var parts = URLComponents(url: url, resolvingAgainstBaseURL: false) {
            parts.percentEncodedQuery = request.query.map { name, value in
                name + "=" + (value.addingPercentEncoding(withAllowedCharacters: Self.plain) ?? "")
            }.joined(separator: "&")
            url = parts.url ?? url
        }
        var headers = [("Authorization", "Bearer " + token), ("Accept", "application/json")]
        var body: [UInt8] = []
        if request.method == "POST" {
            headers.append(("Content-Type", "application/json"))
            body = JSONValue.object(request.body).bytes
        }
        return TransportRequest(
            method: request.method, url: url, headers: headers, body: body, timeout: request.timeout,
            maximumResponseBytes: Self.longestAnswer)
    }
}
