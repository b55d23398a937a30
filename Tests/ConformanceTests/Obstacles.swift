import CountersignCore
import CountersignTesting
import Foundation

/// What gets no answer before time has passed, or never: calls of the provider, and requests.
final class Obstacles: Sendable {
    enum Kind: Sendable {
        /// The client goes on with everything else.
        case provider
        /// The client waits.
        case request
        /// The client has given it up.
        case abandoned
    }

    private struct Obstacle {
        let kind: Kind
        /// The uptime at which it is out of the way; infinite for never.
        let end: TimeInterval
        let release: Handshake
    }

    private struct State {
        var obstacles: [Obstacle] = []
        var watcher: (@Sendable () -> Void)?
        var isOver = false
    }

    private let state = Lock(State())

    /// Waits until `release(at:)` says that the time has come.
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

    /// What the client waits for now; nil if nothing is in its way.
    var present: Kind? {
        state.withLock { state in
            let kinds = state.obstacles.map(\.kind)
            return kinds.contains(.request) ? .request : kinds.contains(.provider) ? .provider : nil
        }
    }

    /// The first instant at which one is out of the way; nil if there is none.
    var next: TimeInterval? {
        state.withLock { $0.obstacles.filter { $0.kind != .abandoned }.map(\.end).min() }
    }

    /// Calls back as soon as there is one.
    func watch(_ watcher: @escaping @Sendable () -> Void) {
        state.withLock { $0.watcher = watcher }
        if present != nil { watcher() }
    }

    /// Lets those go on whose time has come; at infinity all. With `isOver` nobody waits any more.
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
