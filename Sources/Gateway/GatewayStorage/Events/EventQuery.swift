internal import CountersignCore
package import GatewayModel

/// Selects events. Nil members match every event.
package struct EventQuery: Sendable {
    package var appID: String
    /// Lists and exports include events that were assigned to the user after the events were stored. Readers that
    /// follow the log do not get such events, because a reader's position may already be after them.
    package var userID: String?
    package var messageID: String?
    package var requestID: String?
    package var type: String?
    package var name: String?
    package var verdict: VerdictFilter?
    package var claim: ClaimFilter?
    /// The range of the time of receipt, in milliseconds since 1970. The start is inclusive, the end exclusive.
    package var fromMilliseconds: Int64?
    package var toMilliseconds: Int64?
    /// The maximum number of events examined for a page, so that a selective query takes a bounded time.
    package var maximumScanned = EventPage.maximumScanned

    package var partition = EventPartition.whole
    /// Whether PostgreSQL waits for open transactions, so that no earlier event is missing.
    package var isExport = false

    package init(
        appID: String, filter: EventFilter = EventFilter(), partition: EventPartition = .whole
    ) {
        self.appID = appID
        userID = filter.userID
        type = filter.type
        name = filter.name
        verdict = filter.verdict
        claim = filter.claim
        self.partition = partition
    }

    /// The query limited to five seconds around the time in the request id. If a client chose the id, the time may be
    /// wrong. Nil without a time in the id (RFC 9562, section 5.7), or if the query has a time range.
    package var aroundRequest: EventQuery? {
        guard fromMilliseconds == nil, toMilliseconds == nil,
            let bytes = requestID.flatMap({ UUIDText.bytes(of: $0) }), bytes[6] >> 4 == 7
        else { return nil }
        let milliseconds = bytes.prefix(6).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        var query = self
        query.fromMilliseconds = milliseconds - 5_000
        query.toMilliseconds = milliseconds + 5_000
        // Times are known for ranges of 8,192 events, and the time range may overlap three of them.
        query.maximumScanned = 3 * EventPage.maximumScanned
        return query
    }

    var subject: EventSubject {
        messageID.map { .message($0) } ?? userID.map { .user($0) } ?? .app
    }
}

/// A page of events, the newest first. It may be short or empty, because it examines a limited number of events.
package struct EventPage: Sendable {
    package static let maximumScanned = 10_000
    /// A page ends with the event that reaches this size in bytes.
    package static let mostBytes = 1 << 20

    package var events: [StoredEvent] = []
    /// The sequence number to continue from; nil on the last page.
    package var next: Int64?

    package init(events: [StoredEvent], next: Int64?) {
        self.events = events
        self.next = next
    }
}

/// A range of an app's events, the oldest first.
package struct EventRange: Sendable {
    package var events: [StoredEvent] = []
    /// The last sequence number examined, from which to continue.
    package var scannedThrough: Int64
    /// The number of events examined, including those that the filter excludes.
    package var scanned = 0
    /// Whether more events may follow now.
    package var hasMore = false
    package var gap = EventGap.none

    package init(scannedThrough: Int64) {
        self.scannedThrough = scannedThrough
    }
}
