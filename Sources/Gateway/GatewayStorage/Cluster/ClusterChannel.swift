package import CountersignCore

/// A message to the other gateways of the cluster. It is stored for seconds only, and may be lost.
package struct ClusterMessage: Sendable, Equatable {
    package enum Kind: String, Sendable, TextEnum {
        /// A request for the verdicts of all gateways, while a live feed is open at the sender.
        case watch
        /// Verdicts of the sender, for live feeds of other gateways.
        case verdicts
        /// A request to verify the token of a failed request again, for the gateway that has the token in memory.
        case question
        /// The verification result for a ``question``.
        case answer
    }

    package let kind: Kind
    package let body: JSONValue

    package init(_ kind: Kind, _ body: JSONValue) {
        self.kind = kind
        self.body = body
    }
}

/// Sends messages among the gateways of a cluster: verdicts at the next poll, other messages immediately.
package protocol ClusterChannel: AnyObject, Sendable {
    /// Starts polling. At each poll, `take` returns the messages to send, and `receive` receives the messages of other
    /// gateways. Polls are more frequent while `isBusy` returns true. All callbacks run on one thread.
    func start(
        take: @escaping @Sendable () -> [ClusterMessage],
        receive: @escaping @Sendable (ClusterMessage) -> Void,
        isBusy: @escaping @Sendable () -> Bool)

    func wake()

    /// Stops polling. Waits up to three seconds for a database that does not respond.
    func stop()
}
