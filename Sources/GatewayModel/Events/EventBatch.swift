package import CountersignCore

/// Events of one request that are stored together or not at all.
package final class EventBatch: Sendable {
    /// The app that they belong to.
    package let appID: String
    /// Milliseconds since 1970 when the request came.
    package let receivedMilliseconds: Int64
    /// The request's body; each event is a part of it.
    package let body: [UInt8]
    package let events: [Event]
    /// What the request says of customers.
    package let customers: [CustomerChange]
    /// How the request was judged; nil when nobody says.
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

    /// The same batch with what is known of its request.
    package func with(_ proof: EventProof?) -> EventBatch {
        EventBatch(
            appID: appID, receivedMilliseconds: receivedMilliseconds, body: body, events: events,
            customers: customers, proof: proof)
    }

    /// True when there is nothing to store.
    package var isEmpty: Bool { events.isEmpty && customers.isEmpty }

    /// One event, in the model that every dialect decodes into.
    package struct Event: Sendable {
        /// Makes the event unique among those of its sender: of its user or, without one, of its device.
        package var messageID: String
        package var kind: EventKind
        package var userID: String?
        package var anonymousID: String?
        /// What happened or what was looked at, when the kind has a name.
        package var name: String?
        /// Milliseconds since 1970 when it happened, by the client's clock.
        package var timestampMilliseconds: Int64
        /// Where its JSON stands in the batch's body.
        package var json: Range<Int>
        /// True when the message id was made from the content and from the device that sent it, so that the event is the
        /// same after its sender has signed in.
        package var isIdentifiedByContent: Bool

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

        /// What stands for its user or device where they do not say who sent it; nil where they do.
        package var sender: String? {
            isIdentifiedByContent ? userID.map { "content " + $0 } ?? Self.anonymousContentSender : nil
        }

        /// The sender of an event that is known by its content and had no user when it was stored.
        package static let anonymousContentSender = "content"

    }
}

/// What became of a batch.
package struct AppendOutcome: Sendable, Equatable {
    /// Events stored by this request.
    package var accepted = 0
    /// Events that were there already.
    package var duplicates = 0

    package init(accepted: Int = 0, duplicates: Int = 0) {
        self.accepted = accepted
        self.duplicates = duplicates
    }
}
