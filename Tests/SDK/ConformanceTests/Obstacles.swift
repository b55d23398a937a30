import CountersignCore
import CountersignTesting
import Foundation

/// Provider calls and requests that get no answer until a given uptime, or never.
final class Obstacles: Sendable {
    enum Kind: Sendable {
        /// A provider call. The client continues with other work.
        case provider
        /// A request. The client waits for its answer.
        case request
        /// A call that the client no longer waits for.
        case abandoned
    }

    private struct Obstacle {
        let kind: Kind
        /// The uptime at which the call is answered; infinite for never.
        let end: TimeInterval
        let release: Handshake
    }

    private struct State {
        var obstacles: [Obstacle] = []
        var watcher: (@Sendable () -> Void)?
        var isOver = false
    }

    private let state = Lock(State())

    /// Suspends until `release(at:isOver:)` reaches `end`.
    func wait(_ kind: Kind, until end: TimeInterval) async {
        let obstacle = Obstacle(kind: kind, end: end, release: Handshake())
        let (isOver, watcher) = state.withLock { state in
            state.obstacles.append(obstacle)
            return (state.isOver, state.watcher)
        }
        if isOver { return }
        if kind != .abandoned { watcher?() }
        await obstacle.release.wait()
    }

    /// `request` if a request is unanswered, else `provider` if a provider call is; nil if neither is.
    var present: Kind? {
        state.withLock { state in
            let kinds = state.obstacles.map(\.kind)
            return kinds.contains(.request) ? .request : kinds.contains(.provider) ? .provider : nil
        }
    }

    /// The earliest end of the obstacles that are not abandoned; nil without such obstacles.
    var next: TimeInterval? {
        state.withLock { $0.obstacles.filter { $0.kind != .abandoned }.map(\.end).min() }
    }

    /// Calls `watcher` when an obstacle that is not abandoned appears, and at once if one exists.
    func watch(_ watcher: @escaping @Sendable () -> Void) {
        state.withLock { $0.watcher = watcher }
        if present != nil { watcher() }
    }

    /// Resumes the calls that end by `uptime`. With `isOver`, later calls do not wait.
    func release(at uptime: TimeInterval, isOver: Bool = false) {
        let released = state.withLock { state in
            state.isOver = isOver
            let due = state.obstacles.filter { $0.end <= uptime }
            state.obstacles.removeAll { $0.end <= uptime }
            return due
        }
        for obstacle in released { obstacle.release.signal() }
    }
}
