internal import CountersignCore
package import GatewayModel

/// Records whether a gateway can read changes by other processes. After ``patienceMilliseconds`` without a successful
/// read, the gateway is not ready, because it could accept a deleted key or an ended session.
package final class RefreshHealth: Sendable {
    package static let patienceMilliseconds: Int64 = 30_000

    private struct State {
        /// The uptime of the last successful read, or of `begin()`; nil before both.
        var succeeded: Int64?
        var problem: String?
    }

    private let state = Lock(State())
    private let uptime: @Sendable () -> Int64
    private let report: @Sendable (String?) -> Void

    /// `report` is called with the reason when reads begin to fail, and with nil when they succeed again.
    package init(
        uptime: @escaping @Sendable () -> Int64 = { Uptime.milliseconds },
        report: @escaping @Sendable (String?) -> Void = { _ in }
    ) {
        self.uptime = uptime
        self.report = report
    }

    /// Starts the time within which a read must succeed.
    package func begin() {
        let now = uptime()
        state.withLock { $0.succeeded = now }
    }

    package func note(_ error: GatewayError?) {
        let problem = error?.reason
        let now = uptime()
        let isNew = state.withLock { state in
            defer { state.problem = problem }
            if problem == nil { state.succeeded = now }
            return (state.problem == nil) != (problem == nil)
        }
        if isNew { report(problem) }
    }

    package var problem: String? { state.withLock { $0.problem } }

    package var isStale: Bool {
        let now = uptime()
        return state.withLock { state in
            state.succeeded.map { now - $0 >= Self.patienceMilliseconds } ?? false
        }
    }
}
