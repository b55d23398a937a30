internal import Foundation

/// Observes when the app, or the app of an extension, enters the foreground or background (not on macOS). Uses the
/// texts of the notifications' names, so that no UI framework is linked.
final class LifecycleObserver: Sendable {
    private let observation: Observation

    init(
        center: NotificationCenter = .default, background: @escaping @Sendable () -> Void,
        foreground: @escaping @Sendable () -> Void, active: @escaping @Sendable () -> Void = {}
    ) {
        observation = Observation(
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
