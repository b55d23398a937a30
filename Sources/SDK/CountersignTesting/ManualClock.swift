internal import CountersignCore
public import CountersignTransport
public import Foundation

/// A clock that advances only when a test advances it.
///
/// ```swift
/// let deadline = await clock.waitForSleeper()
/// clock.advance(to: deadline)
/// ```
public final class ManualClock: ClientClock {
    private struct Sleeper {
        let deadline: TimeInterval
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now: Date
        var uptime: TimeInterval = 1_000
        var sleepers: [Int: Sleeper] = [:]
        var lastID = 0
        var watchers: [Int: (count: Int, continuation: CheckedContinuation<TimeInterval?, Never>)] = [:]

        var nextDeadline: TimeInterval? { sleepers.values.map(\.deadline).min() }
    }

    private let state: Lock<State>

    /// Makes a clock.
    ///
    /// - Parameter now: The initial time of the device clock.
    public init(now: Date = Date(timeIntervalSince1970: 1_750_000_000)) {
        state = Lock(State(now: now))
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var now: Date { state.withLock { $0.now } }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var uptime: TimeInterval { state.withLock { $0.uptime } }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func sleep(until uptime: TimeInterval) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enum Step { case fallAsleep, wake, cancel }
                let (step, watchers) = state.withLock { state -> (Step, [@Sendable () -> Void]) in
                    if Task.isCancelled { return (.cancel, []) }
                    if uptime <= state.uptime { return (.wake, []) }
                    state.sleepers[id] = Sleeper(deadline: uptime, continuation: continuation)
                    return (.fallAsleep, Self.satisfied(&state))
                }
                for watcher in watchers { watcher() }
                switch step {
                case .fallAsleep: break
                case .wake: continuation.resume()
                case .cancel: continuation.resume(throwing: CancellationError())
                }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Waits until tasks sleep on this clock.
    ///
    /// - Parameter count: The minimum number of sleeping tasks.
    /// - Returns: The earliest deadline, in seconds of `uptime`; the current uptime on cancellation.
    @discardableResult
    public func waitForSleeper(count: Int = 1) async -> TimeInterval {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let deadline = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (isDone, deadline) = state.withLock { state -> (Bool, TimeInterval?) in
                    if Task.isCancelled || state.sleepers.count >= count { return (true, state.nextDeadline) }
                    state.watchers[id] = (count, continuation)
                    return (false, nil)
                }
                if isDone { continuation.resume(returning: deadline) }
            }
        } onCancel: {
            let watcher = state.withLock { $0.watchers.removeValue(forKey: id) }
            watcher?.continuation.resume(returning: nil)
        }
        return deadline ?? uptime
    }

    /// Moves the device clock and the uptime forward, and wakes tasks whose deadline has passed.
    public func advance(by seconds: TimeInterval) {
        advance(to: uptime + seconds)
    }

    /// As `advance(by:)`, to an uptime. Does nothing if this uptime has passed.
    public func advance(to uptime: TimeInterval) {
        let woken = state.withLock { state -> [Sleeper] in
            guard uptime > state.uptime else { return [] }
            state.now += uptime - state.uptime
            state.uptime = uptime
            let due = state.sleepers.filter { $0.value.deadline <= uptime }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.sorted { $0.deadline < $1.deadline }
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    /// Sets the device clock, as the user or the network may do. Does not change `uptime`.
    public func setNow(_ date: Date) {
        state.withLock { $0.now = date }
    }

    private static func satisfied(_ state: inout State) -> [@Sendable () -> Void] {
        let count = state.sleepers.count
        let deadline = state.nextDeadline
        let done = state.watchers.filter { $0.value.count <= count }
        for id in done.keys { state.watchers[id] = nil }
        return done.values.map { watcher in { watcher.continuation.resume(returning: deadline) } }
    }
}
