package import CountersignTransport
package import Foundation

/// Waits for a device's first unlock after its start, before which no file and no key of ours can be read.
///
/// The system may start an app before that, such as for a location.
package enum FirstUnlock {
    /// Named by its text, so that no UI framework is linked.
    static let notification = Notification.Name("UIApplicationProtectedDataDidBecomeAvailable")
    /// Seconds between two looks: they double from one up to this.
    private static let longestPause: TimeInterval = 60

    /// Returns when `isReady` has said yes: it is asked at once, whenever the system says that protected data can be read, and
    /// after pauses.
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

    /// Suspends a queue until `isReady` returns true. Submitted work keeps its order.
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

    /// False for a file that is there and that the system does not open yet.
    static func canOpen(_ path: String) -> Bool {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return !mustWait(after: errno) }
        close(file)
        return true
    }

    /// `EPERM`, unlike a missing permission, which is `EACCES`, and goes away with the first unlock.
    static func mustWait(after error: Int32) -> Bool { error == EPERM }
}
