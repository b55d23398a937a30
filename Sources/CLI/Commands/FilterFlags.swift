internal import CountersignCore
internal import GatewayModel

extension Flag {
    /// The filter for reading events. The flags have the names of the API's parameters.
    static let filter = [
        Flag("user", .text("ID"), completes: .users, help: "only this user's events"),
        Flag("type", .choice(EventKind.storedWords), help: "only events of this type"),
        Flag("name", .text("TEXT"), help: "only events with this name"),
        Flag("verdict", .choice(VerdictFilter.words), help: "only events with this verdict"), claim,
    ]

    static let claim = Flag("claim", .text("NAME=VALUE"), help: "only events with this kept claim")
}

extension Invocation {
    /// The values of ``Flag/filter``; nil matches every event.
    func filter() throws -> [(name: String, value: String?)] {
        try Flag.filter.map { ($0.name, try value(of: $0)) }
    }
}
