internal import Foundation

/// Observes notifications until it is released.
final class Observation: Sendable {
    private let center: NotificationCenter
    // Only passed to the notification center.
    nonisolated(unsafe) private let tokens: [any NSObjectProtocol]

    init(of bodies: [Notification.Name: @Sendable () -> Void], center: NotificationCenter) {
        self.center = center
        tokens = bodies.map { name, body in
            center.addObserver(forName: name, object: nil, queue: nil) { _ in body() }
        }
    }

    func end() {
        for token in tokens { center.removeObserver(token) }
    }

    deinit {
        end()
    }

    /// Observes when the app, or the app of an extension, enters the foreground or background (not on macOS). Uses the
    /// texts of the notifications' names, so that no UI framework is linked.
    static func lifecycle(
        center: NotificationCenter = .default, background: @escaping @Sendable () -> Void,
        foreground: @escaping @Sendable () -> Void, active: @escaping @Sendable () -> Void = {}
    ) -> Observation {
        Observation(
            of: [
                Notification.Name("UIApplicationDidEnterBackgroundNotification"): background,
                Notification.Name("UIApplicationWillEnterForegroundNotification"): foreground,
                // Posted at each start, unlike the notification for the foreground.
                Notification.Name("UIApplicationDidBecomeActiveNotification"): active,
                Notification.Name("NSExtensionHostDidEnterBackgroundNotification"): background,
                Notification.Name("NSExtensionHostWillEnterForegroundNotification"): foreground,
            ], center: center)
    }
}
