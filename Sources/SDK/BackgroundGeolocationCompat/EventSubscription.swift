internal import Foundation

/// A subscription, which ends only when cancelled and not when released.
public final class EventSubscription: Sendable, Hashable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) {
        self.end = end
    }

    /// Ends the subscription. An event whose delivery has begun is still delivered.
    public func cancel() { end() }

    /// As `cancel()`.
    public func remove() { end() }

    /// Adds the subscription to a set.
    ///
    /// - Parameter set: The set. Releasing the set does not end the subscription.
    public func store(in set: inout Set<EventSubscription>) {
        set.insert(self)
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public static func == (left: EventSubscription, right: EventSubscription) -> Bool { left === right }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

/// The listeners of one kind of event.
///
/// `@unchecked Sendable`: `callbacks` is accessed only under `lock`, and the closures are called only on the main
/// thread.
final class Listeners<Event>: @unchecked Sendable {
    private let lock = NSLock()
    private var callbacks: [(id: Int, call: (Event) -> Void)] = []
    private var lastID = 0

    func add(_ call: @escaping (Event) -> Void) -> EventSubscription {
        lock.withLock {
            lastID += 1
            let id = lastID
            callbacks.append((id, call))
            return EventSubscription { [weak self] in self?.remove(id) }
        }
    }

    private func remove(_ id: Int) { lock.withLock { callbacks.removeAll { $0.id == id } } }

    func removeAll() { lock.withLock { callbacks = [] } }

    /// Calls the listeners on the main thread, in the order of `send` calls.
    func send(_ event: sending Event) {
        let sendable = SendableEvent(event: event)
        DispatchQueue.main.async { [self] in
            for callback in lock.withLock({ callbacks }) { callback.call(sendable.event) }
        }
    }

    /// `@unchecked Sendable`: `send` consumes the event, and only the main thread reads it afterwards.
    private struct SendableEvent: @unchecked Sendable {
        let event: Event
    }
}
