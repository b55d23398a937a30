internal import CountersignCore
internal import GatewayModel

/// Calls a closure, once one is set, after events were stored.
final class CommitSignal: GatewayObserver {
    private struct Action {
        var run: @Sendable () -> Void = {}
    }

    private let action = Lock(Action())

    func whenCommitted(_ action: @escaping @Sendable () -> Void) {
        self.action.withLock { $0.run = action }
    }

    func requestEnded(_ record: RequestRecord) {}

    func commitEnded(_ record: CommitRecord) {
        if record.failure == nil, record.events > 0 { action.withLock { $0.run }() }
    }
}
