internal import CountersignCore
package import GatewayModel

/// Which events to read. What is nil is not looked at.
package struct EventQuery: Sendable {
    package var appID: String
    package var userID: String?
    package var messageID: String?
    /// The id of the request that sent the events.
    package var requestID: String?
    package var type: String?
    package var name: String?
    package var verdict: VerdictFilter?
    /// Milliseconds since 1970 of the time of receipt, the first inclusive and the last exclusive.
    package var fromMilliseconds: Int64?
    package var toMilliseconds: Int64?
    /// Events that a page looks at, so that a query that matches little costs a bounded time.
    package var mostLooked = EventPage.mostLooked

    package init(appID: String) {
        self.appID = appID
    }

    /// The query limited to five seconds around the time in the request id. Nil if the id has no time (RFC 9562,
    /// section 5.7) or the query already has a time range. The time may be wrong in an id chosen by a client.
    package var aroundRequest: EventQuery? {
        guard fromMilliseconds == nil, toMilliseconds == nil,
            let bytes = requestID.flatMap({ UUIDText.bytes(of: $0) }), bytes[6] >> 4 == 7
        else { return nil }
        let milliseconds = bytes.prefix(6).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        var query = self
        query.fromMilliseconds = milliseconds - 5_000
        query.toMilliseconds = milliseconds + 5_000
        // Times are known for ranges of 8,192 events, and the time range may overlap three of them.
        query.mostLooked = 3 * EventPage.mostLooked
        return query
    }

    /// What its events are found by.
    var subject: EventSubject {
        messageID.map { .message($0) } ?? userID.map { .user($0) } ?? .app
    }
}

/// A part of a list of events. It may be short, or empty, and not be the last: events that the query leaves out were
/// looked at too.
package struct EventPage: Sendable {
    /// Events that are looked at for one page.
    package static let mostLooked = 10_000
    /// A page ends after the event that brings it to so many bytes, however few events it has by then.
    package static let mostBytes = 1 << 20

    package var events: [StoredEvent] = []
    /// The number to go on from; nil when there are no more.
    package var next: Int64?
    /// True when events after where this began were deleted by retention, so that they are not in it. Said of pages that
    /// begin with the oldest only.
    package var hasMissed = false

    package init() {}
}

/// What was read by following an app's events.
package struct EventStretch: Sendable {
    package var events: [StoredEvent] = []
    /// Up to here all events were looked at: where to go on.
    package var reached: Int64
    /// How many events were looked at, those that the filter leaves out included.
    package var looked = 0
    /// True when there may be more, now.
    package var hasMore = false
    /// True when events after where this began were deleted before they were read, as they were kept no longer.
    package var hasMissed = false

    /// Nothing was looked at yet.
    package init(reached: Int64) {
        self.reached = reached
    }
}
