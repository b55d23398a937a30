internal import CountersignCore

/// One attempt to deliver to a webhook, as it is remembered.
package struct DeliveryRecord: Sendable, Equatable {
    /// What was delivered.
    package enum Kind: String, Sendable, TextEnum {
        case events
        /// Events once more, because somebody has asked for it.
        case replay
        case test
        /// What an app's alert webhook is told.
        case alert
    }

    /// Counts up in the order of the attempts.
    package var sequence: Int64 = 0
    /// The endpoint's id, or ``alerts(of:)``.
    package var endpointID: String
    /// The `webhook-id`.
    package var messageID: String
    package var kind: Kind
    /// The numbers of the first and the last event; nil when there were none.
    package var firstSequence: Int64?
    package var lastSequence: Int64?
    package var events: Int
    /// Counts from 1.
    package var attempt: Int
    /// Milliseconds since 1970 when it began.
    package var atMilliseconds: Int64
    package var durationMilliseconds: Int64
    /// Nil when there was no answer.
    package var status: Int?
    /// A stable word for why there was none, or why it does not count; nil when it was delivered.
    package var error: String?
    /// How the answer begins, with what is no printable text taken out.
    package var answer: String

    package init(
        sequence: Int64 = 0, endpointID: String, messageID: String, kind: Kind, firstSequence: Int64? = nil,
        lastSequence: Int64? = nil, events: Int = 0, attempt: Int, atMilliseconds: Int64,
        durationMilliseconds: Int64, status: Int?, error: String?, answer: String
    ) {
        self.sequence = sequence
        self.endpointID = endpointID
        self.messageID = messageID
        self.kind = kind
        self.firstSequence = firstSequence
        self.lastSequence = lastSequence
        self.events = events
        self.attempt = attempt
        self.atMilliseconds = atMilliseconds
        self.durationMilliseconds = durationMilliseconds
        self.status = status
        self.error = error
        self.answer = answer
    }

    /// What stands for an app's alert webhook, which has no id of its own.
    package static func alerts(of appID: String) -> String { "alerts:" + appID }

    /// The most bytes of an answer that are remembered.
    package static let longestAnswer = 1_024

    /// Bytes that somebody else's server has sent, as text that does no harm wherever it is shown: no control character and
    /// nothing that turns the direction of writing.
    package static func text(_ bytes: some Collection<UInt8>) -> String {
        let text = String(decoding: bytes.prefix(longestAnswer), as: UTF8.self)
        return String(
            String.UnicodeScalarView(
                text.unicodeScalars.filter { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .format, .privateUse, .surrogate, .unassigned, .lineSeparator,
                        .paragraphSeparator:
                        false
                    default: true
                    }
                }))
    }
}

/// How far the deliveries to an endpoint have come, as it is kept.
package struct DeliveryProgress: Sendable, Equatable {
    /// The number of the last event that needs no delivery any more.
    package var committed: Int64
    /// The `webhook-id` of what is being delivered, and the number of its last event; nil when nothing is.
    package var messageID: String?
    package var through: Int64?
    /// The SHA-256 of the delivery's body.
    package var digest: String?
    /// True if retention deleted events before `committed`, and no delivery has reported this yet.
    package var isAfterGap = false
    /// The endpoint's revision at the last attempt; nil before the first.
    package var revision: Int64?
    /// Attempts so far that have failed.
    package var failures = 0
    /// Milliseconds since 1970 when the first of them was.
    package var failingSinceMilliseconds: Int64?
    /// Milliseconds since 1970 of the next attempt.
    package var nextMilliseconds: Int64 = 0

    package init(committed: Int64) {
        self.committed = committed
    }

    /// The progress after all events up to `sequence` were delivered or skipped.
    package func moved(to sequence: Int64, isAfterGap: Bool) -> DeliveryProgress {
        var moved = DeliveryProgress(committed: max(committed, sequence))
        moved.isAfterGap = isAfterGap
        moved.revision = revision
        return moved
    }
}

/// What an operator has asked to be delivered besides.
package struct WebhookRequest: Sendable, Equatable {
    package enum Kind: String, Sendable, TextEnum {
        case test, replay
    }

    package let id: String
    package let endpointID: String
    package let kind: Kind
    /// The `webhook-id` of what is delivered next.
    package var messageID: String
    /// The SHA-256 of the body sent with this id; nil before the first attempt.
    package var digest: String?
    /// The events of a replay: after the first number and up to the second.
    package var after: Int64
    package let through: Int64
    /// Attempts so far that have failed.
    package var failures = 0
    /// Milliseconds since 1970 of the next attempt.
    package var nextMilliseconds: Int64

    package init(
        id: String, endpointID: String, kind: Kind, messageID: String, after: Int64 = 0, through: Int64 = 0,
        failures: Int = 0, nextMilliseconds: Int64, digest: String? = nil
    ) {
        self.id = id
        self.endpointID = endpointID
        self.kind = kind
        self.messageID = messageID
        self.after = after
        self.through = through
        self.failures = failures
        self.nextMilliseconds = nextMilliseconds
        self.digest = digest
    }
}
