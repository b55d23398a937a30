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
}
