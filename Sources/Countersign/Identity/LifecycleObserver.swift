#if canImport(Darwin)
    internal import Foundation

    /// Hears when the app comes and goes. The notifications are named by their text, so that no UI framework is linked and
    /// the SDK works in extensions, where they never come.
    final class LifecycleObserver: Sendable {
        // `NSObjectProtocol` tokens are only handed back to the notification center.
        nonisolated(unsafe) private let tokens: [any NSObjectProtocol]

        init(background: @escaping @Sendable () -> Void, foreground: @escaping @Sendable () -> Void) {
            func observe(_ names: [String], _ body: @escaping @Sendable () -> Void) -> [any NSObjectProtocol]
            {
                names.map { name in
                    NotificationCenter.default.addObserver(
                        forName: Notification.Name(name), object: nil, queue: nil
                    ) { _ in body() }
                }
            }
            tokens =
                observe(
                    [
                        "UIApplicationDidEnterBackgroundNotification",
                        "NSApplicationDidResignActiveNotification",
                    ],
                    background)
                + observe(
                    [
                        "UIApplicationWillEnterForegroundNotification",
                        "NSApplicationDidBecomeActiveNotification",
                    ],
                    foreground)
        }

        deinit {
            for token in tokens { NotificationCenter.default.removeObserver(token) }
        }
    }
#endif
