/// What `CountersignClient.flush()` did.
public struct FlushResult: Sendable, Hashable {
    /// What became of one request.
    public struct Outcome: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `delivered`.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The server has the events; those it refused one by one are in quarantine.
        public static let delivered = Outcome(rawValue: "delivered")
        /// The server could not be reached or could not take them now; the events stay and are sent later.
        public static let retryLater = Outcome(rawValue: "retry_later")
        /// The user's token was refused, or there is no usable one; the events stay until there is another.
        public static let tokenProblem = Outcome(rawValue: "token_problem")
        /// The server refuses something in the request; it is sent again in parts to find out what.
        public static let refused = Outcome(rawValue: "refused")
        /// One event that the server will never take was set aside.
        public static let quarantined = Outcome(rawValue: "quarantined")
        /// Nothing gets through until the app's or the server's settings change.
        public static let configurationProblem = Outcome(rawValue: "configuration_problem")
    }

    /// One request, or one that could not be made for want of a token.
    public struct Batch: Sendable, Hashable {
        /// Whose events; nil for events without a user.
        public let userID: String?
        /// Events in the request.
        public let eventCount: Int
        /// How many of them the server has now.
        public let deliveredCount: Int
        /// What became of it.
        public let outcome: Outcome
        /// A code of the server or of the network, such as `EXPIRED` or `timed_out`; empty when delivered.
        public let code: String
    }

    /// Why a flush ended.
    public struct Ending: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `drained`.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Nothing that could be sent is left; events of users whose token was refused may be.
        public static let drained = Ending(rawValue: "drained")
        /// The server or the network failed; the SDK goes on later on its own.
        public static let interrupted = Ending(rawValue: "interrupted")
        /// Settings have to change first.
        public static let configurationProblem = Ending(rawValue: "configuration_problem")
        /// Another process that shares the queue is sending.
        public static let otherProcessIsSending = Ending(rawValue: "other_process_is_sending")
        /// The token provider was asked for a token already when `flush()` was called, and takes its time; what waits for
        /// the token is sent as soon as it comes.
        public static let waitingForTokenProvider = Ending(rawValue: "waiting_for_token_provider")
        /// `flush()` was called from inside the token provider, which the sending waits for.
        public static let calledFromTokenProvider = Ending(rawValue: "called_from_token_provider")
        /// The client was closed.
        public static let closed = Ending(rawValue: "closed")
    }

    /// The requests in order.
    public let batches: [Batch]
    /// Why it ended.
    public let ending: Ending
    /// Events that are in the queue afterwards.
    public let queued: Int

    /// True when the queue is empty.
    public var isComplete: Bool { queued == 0 && ending == .drained }

    /// The number of events that a server has taken.
    public var delivered: Int {
        batches.reduce(0) { $0 + $1.deliveredCount }
    }
}

extension FlushResult {
    static let calledFromTokenProvider = FlushResult(
        batches: [], ending: .calledFromTokenProvider, queued: 0)
}
