/// Whether retention deleted events before a reader had read them. The gap stays open until the reader has
/// accepted the first event after it, and is reported as `events_missed`.
package struct EventGap: Sendable, Equatable {
    package static let none = EventGap(isOpen: false)

    package let isOpen: Bool

    package init(isOpen: Bool) { self.isOpen = isOpen }

    /// `floor` is the sequence number of the app's last event that retention deleted.
    package init(after position: Int64, floor: Int64) { isOpen = floor > position }

    package func joined(with other: EventGap) -> EventGap { EventGap(isOpen: isOpen || other.isOpen) }

    /// The gap of a consumer after `position`. Event files begin with the oldest stored event, so position 0 has no
    /// gap. Other kinds begin at 0 only if no event was deleted before.
    package func of(_ kind: EventConsumerID.Kind, after position: Int64) -> EventGap {
        kind == .file && position == 0 ? .none : self
    }
}
