internal import CountersignCore
internal import GatewayModel

extension Flag {
    /// The filter for reading events. The flags have the names of the API's parameters.
    static let filter = [
        Flag("user", .text("ID"), completes: .users, help: "only this user's events"), eventType, eventName,
        verdict, claim,
    ]

    static let eventType = Flag("type", .choice(EventKind.storedWords), help: "only events of this type")
    static let eventName = Flag("name", .text("TEXT"), help: "only events with this name")
    static let verdict = Flag(
        "verdict", .choice(VerdictFilter.words), help: "only events with this verdict")
    static let claim = Flag("claim", .text("NAME=VALUE"), help: "only events with this kept claim")

    static func limit(default number: Int) -> Flag {
        Flag("limit", .integer("N", 1...10_000), default: "\(number)", help: "maximum number")
    }
}

extension Invocation {
    /// The values of ``Flag/filter``; nil matches every event.
    func filter() throws -> [(name: String, value: String?)] {
        try Flag.filter.map { ($0.name, try value(of: $0)) }
    }
}
