internal import Foundation

/// Hears when the app, or the app that an extension runs in, comes and goes, where apps do (not on macOS). The notifications
/// are named by their text, so that no UI framework is linked.
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
                // Said at each start, as the one before is not.
                Notification.Name("UIApplicationDidBecomeActiveNotification"): active,
                Notification.Name("NSExtensionHostDidEnterBackgroundNotification"): background,
                Notification.Name("NSExtensionHostWillEnterForegroundNotification"): foreground,
            ], center: center)
    }
}
