/// The result of a client's `flush()`.
///
/// The description has the numbers of delivered and still queued events, and the reason. It is safe to log.
public struct FlushResult: Sendable, Hashable, CustomStringConvertible {
    /// The result of one request.
    public struct Outcome: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `delivered`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The server has stored the events, except rejected events, which are in quarantine.
        public static let delivered = Outcome(rawValue: "delivered")
        /// The server was not reached or could not accept the events now. They are sent later.
        public static let retryLater = Outcome(rawValue: "retry_later")
        /// The user's token was rejected or is missing. The events wait for another token.
        public static let tokenProblem = Outcome(rawValue: "token_problem")
        /// The server rejected the request because of its events. The SDK sends them again in parts to find the cause.
        public static let refused = Outcome(rawValue: "refused")
        /// Events that the server will never accept were moved to quarantine.
        public static let quarantined = Outcome(rawValue: "quarantined")
        /// The settings of the app or the server must change before events can be sent.
        public static let configurationProblem = Outcome(rawValue: "configuration_problem")
    }

    /// One request, or a batch that could not be sent because it has no token.
    public struct Batch: Sendable, Hashable {
        /// The user; nil for events without a user.
        public let userID: String?
        /// Events in the request.
        public let eventCount: Int
        /// The number of events that the server has stored.
        public let deliveredCount: Int
        /// The result of the request.
        public let outcome: Outcome
        /// A code of the server, the network or the SDK, such as `EXPIRED` or `timed_out`; empty when delivered.
        public let code: String
    }

    /// Why a flush ended.
    public struct Ending: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `drained`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Everything was sent or moved to quarantine.
        public static let drained = Ending(rawValue: "drained")
        /// Only events of users in `CountersignSnapshot.parked` are left, which has the reasons.
        public static let parked = Ending(rawValue: "parked")
        /// Server, network or disk failed, or a rejected event waits. The SDK retries, except with the policy `manual`.
        public static let interrupted = Ending(rawValue: "interrupted")
        /// The settings must change before events can be sent.
        public static let configurationProblem = Ending(rawValue: "configuration_problem")
        /// Another client that shares the queue is sending, usually in another process.
        public static let otherProcessIsSending = Ending(rawValue: "other_process_is_sending")
        /// A call of the token provider that began before `flush()` did not return in time. The events that wait for
        /// its token are sent once it returns, except with the policy `manual`.
        public static let waitingForTokenProvider = Ending(rawValue: "waiting_for_token_provider")
        /// `flush()` was called by the token provider, for which sending waits.
        public static let calledFromTokenProvider = Ending(rawValue: "called_from_token_provider")
        /// The client was closed.
        public static let closed = Ending(rawValue: "closed")
    }

    /// The requests in order.
    public let batches: [Batch]
    /// The reason for the end.
    public let ending: Ending
    /// The number of events in the queue afterwards; 0 if unknown, as for `closed` and `calledFromTokenProvider`.
    public let queued: Int

    /// True if the flush ended as `drained` with an empty queue.
    public var isComplete: Bool { queued == 0 && ending == .drained }

    /// The number of events that a server has accepted.
    public var delivered: Int {
        batches.reduce(0) { $0 + $1.deliveredCount }
    }

    /// Such as `delivered 1, still queued 2 (parked: MISSING_TOKEN)`.
    public var description: String {
        let counts = "delivered \(delivered), still queued \(queued)"
        if isComplete { return counts }
        var codes: [String] = []
        for batch in batches where !batch.code.isEmpty && !codes.contains(batch.code) {
            codes.append(batch.code)
        }
        return "\(counts) (\(([ending.rawValue] + codes.prefix(1)).joined(separator: ": "))"
            + codes.dropFirst().map { ", \($0)" }.joined() + ")"
    }
}

extension FlushResult {
    package static let calledFromTokenProvider = FlushResult(
        batches: [], ending: .calledFromTokenProvider, queued: 0)
}
