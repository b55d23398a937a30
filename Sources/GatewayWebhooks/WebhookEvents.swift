package import GatewayModel
package import GatewayStorage

/// The events of endpoints, and how far each has come with them.
package protocol WebhookEvents: Sendable {
    /// The number of the last event that an endpoint needs no more. One that is new begins after its first number.
    func committed(of endpoint: WebhookEndpoint) throws -> Int64

    /// Stores that all events up to `sequence` were delivered or skipped. `isAfterGap` is true if retention deleted
    /// events before it and no delivery has reported this.
    func commit(_ sequence: Int64, isAfterGap: Bool, of endpoint: WebhookEndpoint) throws

    /// The next events that an endpoint wants: after one number, and up to the other where there is one. `isAfterGap` is true
    /// when events were missed before that of which no delivery has told.
    func read(
        for endpoint: WebhookEndpoint, after sequence: Int64, through: Int64?, isReplay: Bool,
        isAfterGap: Bool
    ) throws -> WebhookReading
}

/// What was read for a delivery.
package struct WebhookReading: Sendable {
    package var batch: WebhookBatch
    /// Up to here everything is either in the batch or not wanted.
    package var reached: Int64
    /// True when there may be more after that, now.
    package var hasMore: Bool
    /// True when retention has deleted events before these that the endpoint was not told of.
    package let hasMissed: Bool

    /// A delivery of as many of `events` as fit, which were found by looking at everything up to `reached`.
    /// `position` is what the reader's API calls the place after an event.
    package init(
        _ events: [StoredEvent], of appID: String, isReplay: Bool, reached: Int64, hasMore: Bool,
        hasMissed: Bool, through: Int64?, position: (Int64) -> String
    ) {
        var batch = WebhookBatch(appID: appID, isReplay: isReplay, isAfterGap: hasMissed)
        self.hasMissed = hasMissed
        let end = through ?? .max
        self.reached = min(reached, end)
        self.hasMore = hasMore && reached < end
        for event in events where event.sequence <= end {
            guard batch.add(event, position: position(event.sequence)) else {
                self.reached = batch.lastSequence ?? event.sequence - 1
                self.hasMore = true
                break
            }
        }
        batch.end()
        self.batch = batch
    }
}
