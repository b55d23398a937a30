internal import Foundation

/// Keeps the system from suspending the process until `end()`, or until the system's time limit.
final class BackgroundAssertion: Sendable {
    /// As `ProcessInfo.performExpiringActivity(withReason:using:)`, which calls the closure on its own thread and keeps
    /// the process running until the closure returns. Calls the closure with true when time expires, or at once if no
    /// time is available.
    typealias Activity =
        @Sendable (_ reason: String, _ body: @escaping @Sendable (_ hasExpired: Bool) -> Void) -> Void

    private let ended = DispatchSemaphore(value: 0)

    init(_ activity: Activity, expired: @escaping @Sendable () -> Void) {
        activity("Countersign: events are sent") { [ended] hasExpired in
            if hasExpired {
                expired()
                // Lets the first call of this closure return, because the system waits for that.
                ended.signal()
            } else {
                ended.wait()
            }
        }
    }

    func end() {
        ended.signal()
    }

    /// Nil where processes are not suspended.
    static var system: Activity? {
        #if os(iOS)
            { reason, body in ProcessInfo.processInfo.performExpiringActivity(withReason: reason, using: body)
            }
        #else
            nil
        #endif
    }
}
