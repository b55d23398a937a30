internal import CountersignCore

/// The progress of delivery to one receiver of events: a webhook, a stream or the hourly files of an app.
package struct DeliveryProgress: Sendable, Equatable {
    /// The sequence number of the last event that was delivered or skipped.
    package var committed: Int64
    /// The id of the current message and the sequence number of its last event; nil between messages.
    package var messageID: String?
    package var through: Int64?
    package var digest: String?
    /// A gap before `committed` that no accepted batch has reported yet.
    package var gap = EventGap.none
    /// The revision of the settings at the last attempt; nil before the first.
    package var revision: Int64?
    /// The settings' epoch that ``committed`` belongs to. In a new epoch, delivery begins at the settings' start.
    package var epoch: Int64 = 0
    /// The receiver's own number for the last event, such as a stream's sequence; 0 without one.
    package var receiverSequence: Int64 = 0
    /// Failed attempts since the last success.
    package var failures = 0
    package var failingSinceMilliseconds: Int64?
    package var nextMilliseconds: Int64 = 0
    /// Milliseconds since 1970 of the last success; nil before the first.
    package var deliveredMilliseconds: Int64?
    /// The last failure, also after a success, and its time in milliseconds since 1970; nil without one.
    package var failure: DeliveryFailure?
    package var failedMilliseconds: Int64?

    package init(committed: Int64) { self.committed = committed }

    package func moved(to sequence: Int64) -> DeliveryProgress {
        var moved = self
        moved.committed = sequence
        (moved.messageID, moved.through, moved.digest) = (nil, nil, nil)
        moved.gap = .none
        moved.clearFailures()
        return moved
    }

    package mutating func clearFailures() {
        failures = 0
        failingSinceMilliseconds = nil
        nextMilliseconds = 0
    }
}

package struct DeliveryFailure: Sendable, Equatable {
    /// A stable identifier.
    package let code: String
    /// A description without events, URLs and credentials.
    package let reason: String
    /// The status of an HTTP response; nil without one. Not stored.
    package var status: Int?

    package init(_ code: String, _ reason: String, status: Int? = nil) {
        self.code = code
        self.reason = reason
        self.status = status
    }
}
