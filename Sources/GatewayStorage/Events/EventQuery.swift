package import GatewayModel

/// Which events to read. What is nil is not looked at.
package struct EventQuery: Sendable {
    package var appID: String
    package var userID: String?
    package var messageID: String?
    package var type: String?
    package var name: String?
    package var verdict: VerdictFilter?
    /// Milliseconds since 1970 of the time of receipt, the first inclusive and the last exclusive.
    package var fromMilliseconds: Int64?
    package var toMilliseconds: Int64?

    package init(appID: String) {
        self.appID = appID
    }

    /// What its events are found by.
    var subject: EventSubject {
        messageID.map { .message($0) } ?? userID.map { .user($0) } ?? .app
    }
}

/// A part of a list of events.
package struct EventPage: Sendable {
    package var events: [StoredEvent] = []
    /// True when there may be more after the last one.
    package var hasMore = false

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
