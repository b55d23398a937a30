internal import Foundation

/// Cancels `body` and throws `timed_out` after `seconds`. The limit of `URLSession` itself restarts with each byte.
func withTimeLimit<Value: Sendable>(
    _ seconds: TimeInterval, clock: any ClientClock = SystemClock(),
    _ body: @escaping @Sendable () async throws(HTTPTransportError) -> Value
) async throws(HTTPTransportError) -> Value {
    let instant = clock.uptime + seconds
    let result = await withTaskGroup(of: Result<Value, HTTPTransportError>?.self) { group in
        group.addTask {
            do throws(HTTPTransportError) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        }
        group.addTask {
            do {
                try await clock.sleep(until: instant)
                return .failure(HTTPTransportError(.timedOut, "no whole answer within \(seconds) s"))
            } catch {
                // The response came first, or the calling task was cancelled.
                return nil
            }
        }
        defer { group.cancelAll() }
        for await result in group {
            if let result { return result }
        }
        return .failure(HTTPTransportError(.cancelled, "the task was cancelled"))
    }
    return try result.get()
}
