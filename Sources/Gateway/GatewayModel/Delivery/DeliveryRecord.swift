internal import CountersignCore

/// An attempt of a webhook delivery.
package struct DeliveryRecord: Sendable, Equatable {
    package enum Kind: String, Sendable, TextEnum {
        case events
        case replay
        case test
        case alert
    }

    /// Increases in the order of the attempts.
    package var sequence: Int64 = 0
    /// The endpoint's id, or ``alerts(of:)``.
    package var endpointID: String
    package var messageID: String
    package var kind: Kind
    /// The sequence numbers of the first and the last event; nil for a delivery without events.
    package var firstSequence: Int64?
    package var lastSequence: Int64?
    package var events: Int
    /// Counts from 1.
    package var attempt: Int
    package var atMilliseconds: Int64
    package var durationMilliseconds: Int64
    /// The status of the response; nil without a response.
    package var status: Int?
    package var error: String?
    /// The beginning of the response body, printable characters only.
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

    /// The endpoint id in records of an app's alert webhook, which has no id.
    package static func alerts(of appID: String) -> String { "alerts:" + appID }

    /// The maximum length of ``answer``, in bytes.
    package static let longestAnswer = 1_024

    /// Decodes up to ``longestAnswer`` bytes. Omits control and invisible characters and changes of text direction.
    package static func text(_ bytes: some Collection<UInt8>) -> String {
        let text = String(decoding: bytes.prefix(longestAnswer), as: UTF8.self)
        return String(String.UnicodeScalarView(text.unicodeScalars.filter(\.isPrintable)))
    }
}
