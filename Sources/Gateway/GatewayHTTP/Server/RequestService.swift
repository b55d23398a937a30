internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// Handles the requests of a server's event loops, which share its limits.
package final class RequestService: Sendable {
    package typealias Handler = @Sendable (HTTPRequest) -> HTTPOutcome
    /// Adds the headers that a web page needs to read a response, also to responses that the server makes itself.
    package typealias Decorator = @Sendable (inout HTTPResponse, HTTPRequest) -> Void
    /// Runs a closure that starts the work of all requests of one pass of a loop.
    package typealias Together = @Sendable (() -> Void) -> Void

    let limits: GatewayLimits
    let trustedProxies: [AddressRange]
    let observer: any GatewayObserver
    let memory: BodyMemory
    let rules: HeadLimits
    let connections: ConnectionTable
    let holders: EvictionQueue
    let decorate: Decorator
    /// Nil when no traces are recorded.
    private let sampler: TraceSampler?
    private let now: @Sendable () -> Date
    private let handler: Handler
    private let largeRequests = LargeRequests()
    /// Permits of streamed responses. Each response may hold some pages in memory.
    let streams = AddressPermits(most: 64)

    init(
        limits: GatewayLimits, memory: BodyMemory, trustedProxies: [AddressRange],
        observer: any GatewayObserver, sampler: TraceSampler?, rules: HeadLimits,
        now: @escaping @Sendable () -> Date, report: @escaping @Sendable (String) -> Void,
        decorate: @escaping Decorator, handler: @escaping Handler
    ) {
        self.limits = limits
        self.memory = memory
        self.trustedProxies = trustedProxies
        self.observer = observer
        self.sampler = sampler
        self.rules = rules
        self.now = now
        self.handler = handler
        self.decorate = decorate
        connections = ConnectionTable(limits: limits, report: report)
        holders = EvictionQueue(limit: limits.bodyMemoryBytes, connections: connections)
    }

    var nowMilliseconds: Int64 { Milliseconds(now()).count }

    /// Determines the client's address, whether to record a trace, and the body's encoding. Returns the
    /// response if the request is rejected before its body is read; otherwise nil.
    func checkHeader(of request: HTTPRequest, _ framing: BodyFraming) -> HTTPResponse? {
        if let sampler { request.context.span = sampler.span(caller: request.caller) }
        request.isForwarded =
            ClientAddress.isTrusted(request.clientAddress, trustedProxies) || request.namesProxies
        if !trustedProxies.isEmpty {
            request.clientAddress = ClientAddress.resolve(
                peer: request.clientAddress, forwarded: request.headers("x-forwarded-for"),
                proxies: trustedProxies)
        }
        switch request.header("content-encoding")?.lowercased() {
        case nil, "", "identity": break
        case "gzip", "x-gzip": request.isGzip = true
        default:
            return request.failure(
                415, "unsupported_encoding", "send the body as it is, or with Content-Encoding: gzip"
            ).with("Accept-Encoding", "gzip")
        }
        if case .length(let bytes) = framing, bytes > limits.bodyBytes { return .tooLarge(request, limits) }
        return nil
    }

    func outcome(of request: HTTPRequest, largestBody: Int, holding held: MemoryReservation) -> HTTPOutcome {
        request.context.span?.handlingBegan = MonotonicClock.now
        var handle = handler
        if request.isCompressed {
            handle = { [handler, limits] request in
                if let rejection = Self.unpack(request, limits: limits, held: held) {
                    return .answer(rejection)
                }
                return handler(request)
            }
        }
        return largestBody > LargeRequests.smallBytes
            ? largeRequests.outcome(of: request, holding: held, handle) : handle(request)
    }

    /// Decompresses the body on the calling thread. Returns the response to send if decompression fails.
    private static func unpack(
        _ request: HTTPRequest, limits: GatewayLimits, held: MemoryReservation
    ) -> HTTPResponse? {
        do throws(Gunzip.Failure) {
            let sent = request.body.count
            let size = try Gunzip.size(of: request.body, limits: limits)
            request.body = try Gunzip.decompress(request.body, size: size, limits: limits)
            request.isGzip = false
            held.give(sent)
            return nil
        } catch {
            return error.response(request, limits)
        }
    }

    func trace(of request: HTTPRequest?) -> TraceParent? {
        guard let request else { return nil }
        if let span = request.context.span { return span.context }
        return request.caller.map {
            TraceParent(
                traceID: $0.traceID, spanID: UInt64.random(in: 1...UInt64.max), isSampled: $0.isSampled)
        }
    }

}

extension RequestService {
    /// Handles a request without a connection, and waits for the response. Chunked bodies, trailers and
    /// deadlines do not apply.
    package func respond(
        method: String, target: String, fields: [(name: String, value: String)], body: [UInt8],
        from clientAddress: String
    ) -> HTTPResponse {
        let began = MonotonicClock.now
        var head = "\(method) \(target) HTTP/1.1\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        head += "\r\n"
        var parser = HeadParser(rules)
        let progress = head.withUTF8 { parser.parse(UnsafeRawBufferPointer($0)) }
        let parts = Array(target.utf8).withUnsafeBytes { RequestTarget($0) }
        let request = HTTPRequest(
            method: method, path: parts.path, query: parts.query, fields: HeaderBlock(fields),
            clientAddress: clientAddress, receivedMilliseconds: nowMilliseconds, body: body)
        var fault: HTTPResponse?
        if case .rejected(let found) = progress { fault = found.response }
        var response = fault ?? checkHeader(of: request, parser.framing) ?? answer(request)
        decorate(&response, request)
        let trace = trace(of: request)
        observer.requestEnded(
            RequestRecord(
                request, status: response.status, code: response.code, trace: trace,
                bytesIn: max(body.count, request.body.count), bytesOut: response.body.count, began: began,
                nowMilliseconds: nowMilliseconds))
        if let trace { response.headers.append(("traceresponse", trace.text)) }
        response.headers.append(("X-Request-Id", request.id))
        return response
    }

    private func answer(_ request: HTTPRequest) -> HTTPResponse {
        let held = MemoryReservation(memory)
        held.takeBeyondLimit(request.body.count)
        var largest = request.body.count
        if request.isCompressed {
            do throws(Gunzip.Failure) {
                largest = max(largest, try Gunzip.size(of: request.body, limits: limits))
            } catch {
                return error.response(request, limits)
            }
        }
        switch outcome(of: request, largestBody: largest, holding: held) {
        case .answer(let response): return response
        case .later(let start, let poll):
            let isDone = DispatchSemaphore(value: 0)
            start { isDone.signal() }
            while true {
                isDone.wait()
                if let response = poll() { return response }
            }
        }
    }
}

extension RequestRecord {
    /// Moves the context out of the request, because a copy would retain each of its strings.
    convenience init(
        _ request: HTTPRequest?, status: Int?, code: String?, trace: TraceParent?, bytesIn: Int,
        bytesOut: Int, began: UInt64, nowMilliseconds: @autoclosure () -> Int64
    ) {
        let ended = MonotonicClock.now
        var context = RequestContext()
        if let request { swap(&context, &request.context) }
        context.span?.began = began
        context.span?.ended = ended
        self.init(
            receivedMilliseconds: request?.receivedMilliseconds ?? nowMilliseconds(),
            id: request?.id ?? "", trace: trace, method: request?.method ?? "", path: request?.path ?? "",
            clientAddress: request?.clientAddress ?? "", context: consume context,
            status: status, code: code, bytesIn: bytesIn, bytesOut: bytesOut,
            seconds: began == 0 ? 0 : Double(ended - began) / 1e9)
    }
}

extension Gunzip.Failure {
    func response(_ request: HTTPRequest, _ limits: GatewayLimits) -> HTTPResponse {
        switch self {
        case .tooLarge: .tooLarge(request, limits)
        case .damaged:
            request.failure(400, "invalid_encoding", "the body is not one complete gzip member")
        }
    }
}

extension HTTPResponse {
    static func tooLarge(_ request: HTTPRequest, _ limits: GatewayLimits) -> HTTPResponse {
        request.failure(
            413, "body_too_large",
            """
            a body may have at most \(limits.bodyBytes) bytes, also decompressed, and gzip may compress it at most \
            \(limits.compressionRatio) times: send fewer events at a time
            """
        )
    }
}
