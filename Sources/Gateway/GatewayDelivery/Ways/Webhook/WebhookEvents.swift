package import GatewayModel
package import GatewayStorage

/// Reads events for endpoints and stores their progress.
package protocol WebhookEvents: Sendable {
    /// The sequence number up to which an endpoint needs no more events. For a new endpoint this is its start
    /// position.
    func committed(of endpoint: WebhookEndpoint) throws -> Int64

    /// Stores that all events up to `sequence` were delivered or skipped. `isAfterGap` is true if retention
    /// deleted events before it and no delivery has reported this.
    func commit(_ sequence: Int64, isAfterGap: Bool, of endpoint: WebhookEndpoint) throws

    /// The next events that match an endpoint's filters, after `sequence` and up to `through`. `isAfterGap`
    /// is true if events were missed and no delivery has reported this.
    func read(
        for endpoint: WebhookEndpoint, after sequence: Int64, through: Int64?, isReplay: Bool,
        isAfterGap: Bool
    ) throws -> WebhookReading
}

package struct WebhookReading: Sendable {
    package var batch: WebhookBatch
    /// All events up to this sequence number are in the batch or do not match.
    package var reached: Int64
    /// Whether there may be more events now.
    package var hasMore: Bool
    /// Whether retention deleted earlier events without the endpoint being told.
    package let hasMissed: Bool

    /// A delivery of as many of `events` as fit. `reached` is the last sequence number that was searched.
    /// `position` returns the reader API's position after an event.
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
