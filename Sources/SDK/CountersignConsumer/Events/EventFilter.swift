/// Selects the events to read. Nil members match all events.
public struct EventFilter: Sendable, Hashable {
    /// The result of verifying the user.
    public var verdict: ConsumedEvent.Verdict?
    /// The kind of event, such as `track`.
    public var type: String?
    /// The name of a tracked event.
    public var name: String?
    /// The user's id.
    public var userID: String?
    /// A claim of the user's token that the gateway stores, as `name=value`.
    public var claim: String?

    /// Makes a filter.
    public init(
        verdict: ConsumedEvent.Verdict? = nil, type: String? = nil, name: String? = nil,
        userID: String? = nil,
        claim: String? = nil
    ) {
        self.verdict = verdict
        self.type = type
        self.name = name
        self.userID = userID
        self.claim = claim
    }
}
