internal import CountersignCore
public import CountersignTransport

/// A transport without a network: a closure answers each request. Stores the requests for a test, and counts
/// concurrent requests in `overlaps`.
public final class ScriptedTransport: HTTPTransport {
    /// Answers one request.
    public typealias Handler = @Sendable (TransportRequest) async throws -> TransportResponse

    private struct State {
        var handler: Handler
        var requests: [TransportRequest] = []
        var inFlight = 0
        var overlaps = 0
    }

    private let state: Lock<State>
    private let arrivals = Handshake()

    /// Creates a transport.
    ///
    /// - Parameter handler: Answers each request. A `CancellationError` becomes `cancelled`, and any error other than
    ///   `HTTPTransportError` becomes `connection_lost`.
    public init(_ handler: @escaping Handler) {
        state = Lock(State(handler: handler))
    }

    /// The requests so far, in order.
    public var requests: [TransportRequest] { state.withLock { $0.requests } }

    /// Number of requests that began while another was in progress.
    public var overlaps: Int { state.withLock { $0.overlaps } }

    /// Replaces the handler for later requests.
    public func setHandler(_ handler: @escaping Handler) {
        state.withLock { $0.handler = handler }
    }

    /// Waits until this number of requests has been received, or until the task is cancelled.
    public func waitForRequests(_ count: Int) async {
        await arrivals.wait(count: count)
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        let handler = state.withLock { state in
            state.requests.append(request)
            if state.inFlight > 0 { state.overlaps += 1 }
            state.inFlight += 1
            return state.handler
        }
        arrivals.signal()
        defer { state.withLock { $0.inFlight -= 1 } }
        do {
            return try await handler(request)
        } catch let error as HTTPTransportError {
            throw error
        } catch {
            throw HTTPTransportError(error is CancellationError ? .cancelled : .connectionLost, "scripted")
        }
    }
}
