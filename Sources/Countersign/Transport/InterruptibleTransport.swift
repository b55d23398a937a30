internal import CountersignCore

/// A transport whose exchanges somebody else than the caller can break off.
final class InterruptibleTransport: HTTPTransport {
    private struct State {
        var exchanges: [Int: Task<Result<HTTPResponse, HTTPTransportError>, Never>] = [:]
        var lastID = 0
    }

    private let transport: any HTTPTransport
    private let state = Lock(State())

    init(_ transport: any HTTPTransport) {
        self.transport = transport
    }

    func send(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponse {
        let (id, exchange) = state.withLock { state in
            state.lastID += 1
            let exchange = Task { [transport] () -> Result<HTTPResponse, HTTPTransportError> in
                do throws(HTTPTransportError) {
                    return .success(try await transport.send(request))
                } catch {
                    return .failure(error)
                }
            }
            state.exchanges[state.lastID] = exchange
            return (state.lastID, exchange)
        }
        let result = await withTaskCancellationHandler {
            await exchange.value
        } onCancel: {
            exchange.cancel()
        }
        _ = state.withLock { $0.exchanges.removeValue(forKey: id) }
        return try result.get()
    }

    /// Breaks off what is under way: that fails as `cancelled`.
    func interrupt() {
        for exchange in state.withLock({ Array($0.exchanges.values) }) { exchange.cancel() }
    }
}
