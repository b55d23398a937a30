internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// A transport whose requests can be cancelled from outside, before the process is suspended.
final class InterruptibleTransport: HTTPTransport {
    /// Seconds after which an interruption ends. A process that still runs then was not suspended, or was woken in the
    /// background.
    private static let longestPause: TimeInterval = 60

    private struct State {
        var pausedUntil: TimeInterval = -.infinity
        var exchanges: [Int: Task<Result<TransportResponse, HTTPTransportError>, Never>] = [:]
        var lastID = 0
    }

    private let transport: any HTTPTransport
    private let clock: any ClientClock
    private let state = Lock(State())

    init(_ transport: any HTTPTransport, clock: any ClientClock) {
        self.transport = transport
        self.clock = clock
    }

    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        let uptime = clock.uptime
        let begun = state.withLock {
            state -> (Int, Task<Result<TransportResponse, HTTPTransportError>, Never>)? in
            guard uptime >= state.pausedUntil else { return nil }
            state.lastID += 1
            let exchange = Task { [transport] () -> Result<TransportResponse, HTTPTransportError> in
                do throws(HTTPTransportError) {
                    return .success(try await transport.send(request))
                } catch {
                    return .failure(error)
                }
            }
            state.exchanges[state.lastID] = exchange
            return (state.lastID, exchange)
        }
        guard let (id, exchange) = begun else {
            throw HTTPTransportError(.cancelled, "the app's background time has ended")
        }
        let result = await withTaskCancellationHandler {
            await exchange.value
        } onCancel: {
            exchange.cancel()
        }
        _ = state.withLock { $0.exchanges.removeValue(forKey: id) }
        return try result.get()
    }

    /// Cancels running requests, and rejects new requests as `cancelled` until `resume()`, for a minute at most.
    func interrupt() {
        let end = clock.uptime + Self.longestPause
        let exchanges = state.withLock { state in
            state.pausedUntil = end
            return Array(state.exchanges.values)
        }
        for exchange in exchanges { exchange.cancel() }
    }

    func resume() {
        state.withLock { $0.pausedUntil = -.infinity }
    }
}
