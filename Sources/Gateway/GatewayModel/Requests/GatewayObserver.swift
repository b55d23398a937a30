/// Called on the threads of the server and the store, so implementations must not block.
package protocol GatewayObserver: Sendable {
    /// A request was answered, or ended without a response.
    func requestEnded(_ record: RequestRecord)

    func commitEnded(_ record: CommitRecord)

    /// Retention deleted events before a consumer with a hold had read them, because the hold has expired.
    /// Called once, and again only after the consumer has caught up in between. `kind` is ``EventConsumerID/Kind/noun``.
    func eventsMissed(by consumer: String, ofKind kind: String, appID: String)
}

extension GatewayObserver {
    package func commitEnded(_ record: CommitRecord) {}

    package func eventsMissed(by consumer: String, ofKind kind: String, appID: String) {}
}

/// A completed request. A class, because several observers share it.
package final class RequestRecord: Sendable {
    package let receivedMilliseconds: Int64
    package let id: String
    package let trace: TraceParent?
    /// As sent; not trustworthy.
    package let method: String
    /// As sent, without the query; not trustworthy.
    package let path: String
    package let clientAddress: String
    package let context: RequestContext
    /// The status of the response; nil if the connection was closed without a response.
    package let status: Int?
    package let code: String?
    /// Bytes of the decompressed body.
    package let bytesIn: Int
    package let bytesOut: Int
    /// Seconds from the first byte of the request until the response is ready or the connection is closed.
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

package struct CommitRecord: Sendable {
    /// Events in the commit, including duplicates.
    package var events: Int
    /// Seconds until the commit was durable.
    package var seconds: Double
    /// The reason of a failure; nil after success.
    package var failure: StoreFailure?

    package init(events: Int, seconds: Double, failure: StoreFailure? = nil) {
        self.events = events
        self.seconds = seconds
        self.failure = failure
    }
}

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
