internal import Countersign
internal import CountersignDelivery
internal import Foundation

/// Ends a subscription when it is cancelled, and only then: it may be thrown away.
public final class EventSubscription: Sendable, Hashable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) {
        self.end = end
    }

    /// Ends it. What is on its way to the main thread already still arrives.
    public func cancel() { end() }

    /// As `cancel()`.
    public func remove() { end() }

    /// Keeps it with others, such as those of one screen.
    ///
    /// - Parameter set: What it is put into. It does not end when the set goes: `cancel()` ends it.
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
/// `@unchecked Sendable`: `callbacks` is only touched under `lock`, and what is in it is only called on the main thread.
final class Listeners<Event>: @unchecked Sendable {
    private let lock = NSLock()
    private var callbacks: [(id: Int, call: (Event) -> Void)] = []
    private var lastID = 0

    func add(_ call: @escaping (Event) -> Void) -> EventSubscription {
        lock.lock()
        defer { lock.unlock() }
        lastID += 1
        let id = lastID
        callbacks.append((id, call))
        return EventSubscription { [weak self] in self?.remove(id) }
    }

    func remove(_ id: Int) {
        lock.lock()
        defer { lock.unlock() }
        callbacks.removeAll { $0.id == id }
    }

    func removeAll() {
        lock.lock()
        defer { lock.unlock() }
        callbacks = []
    }

    /// Calls all of them on the main thread, after what was sent before.
    func send(_ event: sending Event) {
        let parcel = Parcel(event)
        DispatchQueue.main.async { [self] in
            for call in current { call(parcel.event) }
        }
    }

    private var current: [(Event) -> Void] {
        lock.lock()
        defer { lock.unlock() }
        return callbacks.map(\.call)
    }

    /// `@unchecked Sendable`: whoever made the event has let go of it, and only the main thread opens the parcel.
    private struct Parcel: @unchecked Sendable {
        let event: Event

        init(_ event: Event) {
            self.event = event
        }
    }
}
