package import CountersignTransport
package import Foundation

/// Waits for the first unlock after the device's start. Before the unlock, the SDK's files and keys cannot be read. The
/// system may start an app earlier, such as for a location update.
package enum FirstUnlock {
    /// Named by its text, so that no UI framework is linked.
    static let notification = Notification.Name("UIApplicationProtectedDataDidBecomeAvailable")
    /// Seconds. Pauses begin with one second and double.
    private static let longestPause: TimeInterval = 60

    /// Calls `isReady` at once, after each notification that protected data is available, and after pauses.
    package static func wait(
        clock: any ClientClock, center: NotificationCenter = .default,
        until isReady: @Sendable () async -> Bool
    ) async {
        var pause: TimeInterval = 1
        while !Task.isCancelled {
            let (ends, end) = AsyncStream.makeStream(of: Void.self)
            let observer = Observation(of: [notification: { end.finish() }], center: center)
            defer { observer.end() }
            if await isReady() { return }
            let instant = clock.uptime + pause
            let nap = Task {
                try? await clock.sleep(until: instant)
                end.finish()
            }
            for await _ in ends {}
            nap.cancel()
            pause = min(pause * 2, longestPause)
        }
    }

    /// Suspends `queue` until `isReady` returns true. Submitted work keeps its order.
    static func hold(
        _ queue: DispatchQueue, clock: any ClientClock, center: NotificationCenter = .default,
        until isReady: @escaping @Sendable () -> Bool
    ) {
        guard !isReady() else { return }
        queue.suspend()
        Task {
            await wait(clock: clock, center: center, until: isReady)
            queue.resume()
        }
    }

    /// False for an existing file that the system does not open yet.
    static func canOpen(_ path: String) -> Bool {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return !mustWait(after: errno) }
        close(file)
        return true
    }

    /// True for `EPERM`, which the first unlock resolves. A missing permission is `EACCES`.
    static func mustWait(after error: Int32) -> Bool { error == EPERM }
}
