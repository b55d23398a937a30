package import CountersignCore

/// Events of one request, stored in one transaction. PostgreSQL stores a large batch in several transactions.
package final class EventBatch: Sendable {
    package let appID: String
    package let receivedMilliseconds: Int64
    /// The JSON of the events, usually the request's body. Each event is a range of these bytes.
    package let body: [UInt8]
    package let events: [Event]
    package let customers: [CustomerChange]
    /// The verification result of the request; nil when unknown.
    package let proof: EventProof?

    package init(
        appID: String, receivedMilliseconds: Int64, body: [UInt8], events: [Event],
        customers: [CustomerChange] = [], proof: EventProof? = nil
    ) {
        self.appID = appID
        self.receivedMilliseconds = receivedMilliseconds
        self.body = body
        self.events = events
        self.customers = customers
        self.proof = proof
    }

    package var isEmpty: Bool { events.isEmpty && customers.isEmpty }

    /// An event in the model that every dialect decodes into.
    package struct Event: Sendable {
        /// Unique for its sender; see ``EventIdentity``.
        package let messageID: String
        package let kind: EventKind
        package let userID: String?
        package let anonymousID: String?
        /// The name of the event, page or screen, the id of the group or the previous user id, depending on the kind.
        package let name: String?
        /// Client time of the event, in milliseconds since 1970.
        package let timestampMilliseconds: Int64
        /// The range of the event's JSON in the batch's body.
        package let json: Range<Int>
        /// Whether the client sent no message id, so that the id was derived from the content and the device if
        /// possible. A repeated event is then a duplicate even if the user has signed in since the first attempt.
        package let isIdentifiedByContent: Bool

        package init(
            messageID: String, kind: EventKind, userID: String? = nil, anonymousID: String? = nil,
            name: String? = nil,
            timestampMilliseconds: Int64, json: Range<Int>, isIdentifiedByContent: Bool = false
        ) {
            self.messageID = messageID
            self.kind = kind
            self.userID = userID
            self.anonymousID = anonymousID
            self.name = name
            self.timestampMilliseconds = timestampMilliseconds
            self.json = json
            self.isIdentifiedByContent = isIdentifiedByContent
        }
    }
}

package struct AppendOutcome: Sendable, Equatable {
    package var accepted = 0
    /// Events that were already stored.
    package var duplicates = 0

    package init(accepted: Int = 0, duplicates: Int = 0) {
        self.accepted = accepted
        self.duplicates = duplicates
    }
}
