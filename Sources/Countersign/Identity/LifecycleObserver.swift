#if canImport(Darwin)
    internal import Foundation

    /// Hears when the app comes and goes, where apps do (not on macOS). The notifications are named by their text, so that
    /// no UI framework is linked and the SDK works in extensions, where they never come.
    final class LifecycleObserver: Sendable {
        // Only handed back to the notification center.
        nonisolated(unsafe) private let tokens: [any NSObjectProtocol]

        init(background: @escaping @Sendable () -> Void, foreground: @escaping @Sendable () -> Void) {
            func observe(_ name: String, _ body: @escaping @Sendable () -> Void) -> any NSObjectProtocol {
                NotificationCenter.default.addObserver(
                    forName: Notification.Name(name), object: nil, queue: nil
                ) { _ in body() }
            }
            tokens = [
                observe("UIApplicationDidEnterBackgroundNotification", background),
                observe("UIApplicationWillEnterForegroundNotification", foreground),
            ]
        }

        deinit {
            for token in tokens { NotificationCenter.default.removeObserver(token) }
        }
    }
#endif
