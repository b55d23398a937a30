internal import CountersignCore

/// An event that is not stored. The gateway would reject the unchanged event again.
struct RejectedEvent {
    let index: Int
    /// A stable identifier in snake case.
    let code: String
    let reason: String

    static let schemas: JSONObject = [
        "RejectedEvent": [
            "type": "object", "required": ["index", "code", "reason"],
            "properties": [
                "index": ["type": "integer", "minimum": 0], "code": ["type": "string"],
                "reason": ["type": "string"],
            ],
        ]
    ]

    func write(to output: inout [UInt8]) {
        JSONValue.object([
            "index": .integer(Int64(index)), "code": .string(code), "reason": .string(reason),
        ]).write(to: &output)
    }

    static func replacedID(_ index: Int, _ members: String) -> RejectedEvent {
        RejectedEvent(
            index: index, code: "invalid_event",
            reason: "\(members) must not have half of a surrogate pair, because two ids could become one")
    }
}

/// A change that the gateway made to an event before storing it.
struct EventWarning {
    let index: Int
    let code: String
    let reason: String

    /// Appends `,"warnings":[…]` unless the list is empty.
    static func write(_ warnings: [EventWarning], to output: inout [UInt8]) {
        guard let list = list(warnings) else { return }
        output.append(contentsOf: #","warnings":"#.utf8)
        list.write(to: &output)
    }

    static func list(_ warnings: [EventWarning]) -> JSONValue? {
        guard !warnings.isEmpty else { return nil }
        return .array(
            warnings.map {
                [
                    "index": .integer(Int64($0.index)), "code": .string($0.code),
                    "reason": .string($0.reason),
                ]
            })
    }

    static let schema: JSONValue = [
        "type": "array", "items": ["$ref": "#/components/schemas/RejectedEvent"],
        "description":
            "Events that were changed before they were stored. Code time_replaced: the time could not be read, so the event has the time of receipt.",
    ]
}
