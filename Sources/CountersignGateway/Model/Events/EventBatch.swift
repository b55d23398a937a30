package import CountersignCore

/// Events of one request that are stored together or not at all.
package struct EventBatch: Sendable {
    /// The app that they belong to.
    package let appID: String
    /// Milliseconds since 1970 when the request came.
    package let receivedMilliseconds: Int64
    /// The request's body; each event is a part of it.
    package let body: [UInt8]
    package let events: [Event]
    /// What the request says of customers.
    package let customers: [CustomerChange]

    package init(
        appID: String, receivedMilliseconds: Int64, body: [UInt8], events: [Event],
        customers: [CustomerChange] = []
    ) {
        self.appID = appID
        self.receivedMilliseconds = receivedMilliseconds
        self.body = body
        self.events = events
        self.customers = customers
    }

    /// True when there is nothing to store.
    var isEmpty: Bool { events.isEmpty && customers.isEmpty }

    /// One event, in the model that every dialect decodes into.
    package struct Event: Sendable {
        /// What makes the event one of a kind among those of its sender: of its user or, without one, of its device.
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
        package var isIdentifiedByContent = false

        /// What stands for its user or device where they do not say who sent it; nil where they do.
        var sender: String? {
            isIdentifiedByContent ? userID.map { "content " + $0 } ?? "content" : nil
        }
    }
}

/// What became of a batch.
package struct AppendOutcome: Sendable, Equatable {
    /// Events stored by this request.
    package var accepted = 0
    /// Events that were there already.
    package var duplicates = 0
}

/// Why a batch was not stored. Nothing of it was; the sender may try again.
package struct StoreFailure: Error, Sendable {
    package enum Reason: Sendable {
        /// The disk, or the quota on it, is full.
        case full
        /// More waits for the disk than may.
        case overloaded
        /// SQLite or the disk failed.
        case failed
        /// The gateway is stopping.
        case closed
    }

    package let reason: Reason
    /// For the operator's log; holds no event.
    package let detail: String
}

/// Where events are kept: the one place that knows how.
package protocol EventStore: Sendable {
    /// Stores a batch and calls `completion`, from any thread, when it is safe on disk or has failed.
    func append(
        _ batch: EventBatch, completion: @escaping @Sendable (Result<AppendOutcome, StoreFailure>) -> Void)

    /// Runs `body`, which appends; the batches of this thread then share a commit, as far as there is room.
    func together(_ body: () -> Void)

    /// What waits and what lies on the disk, now.
    var load: StoreLoad { get }

    /// Counts that a key has verified a request's token; kept with the next commit.
    func noteKeyUse(appID: String, keyID: String, milliseconds: Int64)

    /// Proves that the store can be written, by a write.
    func probe(completion: @escaping @Sendable (Result<Void, StoreFailure>) -> Void)

    /// Stores what waits and closes; later calls fail with `closed`.
    func close()
}
