/// Hears of everything that happens in a gateway: metrics and logs.
///
/// Called on the server's and the store's threads, so an implementation must not block.
package protocol GatewayObserver: Sendable {
    /// A request has its answer, or ended without one.
    func requestEnded(_ record: RequestRecord)

    /// The store has committed, or failed to.
    func commitEnded(_ record: CommitRecord)

    /// Events that retention had held for a consumer were deleted before it had read them: it was too late. Once, until it
    /// has caught up.
    func eventsMissed(by consumer: String, ofKind kind: String, appID: String)
}

extension GatewayObserver {
    package func eventsMissed(by consumer: String, ofKind kind: String, appID: String) {}
}

/// One request that has ended. One object, because it is handed to several observers.
package final class RequestRecord: Sendable {
    /// Milliseconds since 1970 when its header was complete.
    package let receivedMilliseconds: Int64
    /// What the answer calls it.
    package let id: String
    /// The trace that the client says it belongs to.
    package let trace: TraceParent?
    /// As sent: not to be trusted.
    package let method: String
    /// As sent, without the query: not to be trusted.
    package let path: String
    /// The address that it came from.
    package let clientAddress: String
    /// What was learnt on the way.
    package let context: RequestContext
    /// The status of the answer; nil when the client left before.
    package let status: Int?
    /// The word in a failure's answer.
    package let code: String?
    /// Bytes of the body, decompressed.
    package let bytesIn: Int
    /// Bytes of the answer's body.
    package let bytesOut: Int
    /// Seconds from the request line to the answer.
    package let seconds: Double

    package init(
        receivedMilliseconds: Int64, id: String, trace: TraceParent? = nil, method: String, path: String,
        clientAddress: String, context: RequestContext, status: Int? = nil, code: String? = nil, bytesIn: Int,
        bytesOut: Int, seconds: Double
    ) {
        self.receivedMilliseconds = receivedMilliseconds
        self.id = id
        self.trace = trace
        self.method = method
        self.path = path
        self.clientAddress = clientAddress
        self.context = context
        self.status = status
        self.code = code
        self.bytesIn = bytesIn
        self.bytesOut = bytesOut
        self.seconds = seconds
    }
}

/// One commit that has ended.
package struct CommitRecord: Sendable {
    /// Requests that shared it.
    package var batches: Int
    /// Events that it stored, duplicates included.
    package var events: Int
    /// How long it took, from its beginning to the disk's word, in seconds.
    package var seconds: Double
    /// Why nothing was stored; nil when all was.
    package var failure: StoreFailure?

    package init(batches: Int, events: Int, seconds: Double, failure: StoreFailure? = nil) {
        self.batches = batches
        self.events = events
        self.seconds = seconds
        self.failure = failure
    }
}

/// Passes on what it hears to several others.
package struct ObserverGroup: GatewayObserver {
    let members: [any GatewayObserver]

    package init(members: [any GatewayObserver]) {
        self.members = members
    }

    package func requestEnded(_ record: RequestRecord) {
        for member in members { member.requestEnded(record) }
    }

    package func commitEnded(_ record: CommitRecord) {
        for member in members { member.commitEnded(record) }
    }

    package func eventsMissed(by consumer: String, ofKind kind: String, appID: String) {
        for member in members { member.eventsMissed(by: consumer, ofKind: kind, appID: appID) }
    }
}
