internal import CountersignCore

/// A test or replay that an operator has requested.
package struct DeliveryRequest: Sendable, Equatable {
    package enum Kind: String, Sendable, TextEnum {
        case test, replay
    }

    /// Creates a message id, without a full stop, as Standard Webhooks requires for `webhook-id`.
    package static func newMessageID() -> String { "msg_" + UUIDv7.make() }

    package let id: String
    package let wayName: String
    package let kind: Kind
    package var messageID: String
    /// The SHA-256 of the body sent with ``messageID``; nil before the first attempt.
    package var digest: String?
    /// The range of a replay: events after the first sequence number, up to and including the second.
    package var after: Int64
    package let through: Int64
    package var failures = 0
    package var nextMilliseconds: Int64

    package init(
        id: String, wayName: String, kind: Kind, messageID: String, after: Int64 = 0, through: Int64 = 0,
        failures: Int = 0, nextMilliseconds: Int64, digest: String? = nil
    ) {
        self.id = id
        self.wayName = wayName
        self.kind = kind
        self.messageID = messageID
        self.after = after
        self.through = through
        self.failures = failures
        self.nextMilliseconds = nextMilliseconds
        self.digest = digest
    }
}
