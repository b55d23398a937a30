package import CountersignCore

/// Something that one gateway tells the others of its cluster. Nobody keeps it, and it may be lost.
package struct ClusterMessage: Sendable, Equatable {
    package enum Kind: String, Sendable, TextEnum {
        /// Somebody watches verdicts at the sender.
        case watch
        /// Verdicts of the sender, for those who watch elsewhere.
        case verdicts
        /// A sample that is to be judged by whoever has its token in memory.
        case question
        /// How it was judged.
        case answer
    }

    package let kind: Kind
    package let body: JSONValue

    package init(_ kind: Kind, _ body: JSONValue) {
        self.kind = kind
        self.body = body
    }
}

/// Carries messages among the gateways of a cluster: verdicts at the next look, all others at once.
package protocol ClusterChannel: AnyObject, Sendable {
    /// Begins. `take` is asked at each look for what is to be sent, `hear` is told what the others have sent since the last
    /// look, and while `isBusy` the looks are close together. All are called on one thread.
    func start(
        take: @escaping @Sendable () -> [ClusterMessage], hear: @escaping @Sendable (ClusterMessage) -> Void,
        isBusy: @escaping @Sendable () -> Bool)

    /// Looks at once.
    func wake()

    /// Ends; nothing is heard any more. Waits three seconds at most for a database that does not answer.
    func stop()
}
