internal import CountersignCore

/// An event that is not stored, now or ever: the sender should not send it again as it is.
struct RejectedEvent {
    /// Its place in the request, from 0.
    let index: Int
    /// A stable word in snake case.
    let code: String
    /// What is wrong with it.
    let reason: String

    /// How its fault is described.
    static let schemas: JSONObject = [
        "RejectedEvent": [
            "type": "object", "required": ["index", "code", "reason"],
            "properties": [
                "index": ["type": "integer", "minimum": 0], "code": ["type": "string"],
                "reason": ["type": "string"],
            ],
        ]
    ]

    /// The event's fault as a JSON object, appended to `output`.
    func write(to output: inout [UInt8]) {
        JSONValue.object([
            "index": .integer(Int64(index)), "code": .string(code), "reason": .string(reason),
        ]).write(to: &output)
    }

    /// Why an event is rejected in which a half surrogate would have to be replaced in an id.
    static func replacedID(_ index: Int, _ members: String) -> RejectedEvent {
        RejectedEvent(
            index: index, code: "invalid_event",
            reason: "\(members) must not have half of a surrogate pair, because two ids could become one")
    }
}

/// An event that was stored otherwise than it was sent.
struct EventWarning {
    /// Its place in the request, from 0.
    let index: Int
    /// A stable word in snake case.
    let code: String
    let reason: String

    /// Appends `warnings`, a member with a comma before it, unless there are none.
    static func write(_ warnings: [EventWarning], to output: inout [UInt8]) {
        guard let list = list(warnings) else { return }
        output.append(contentsOf: #","warnings":"#.utf8)
        list.write(to: &output)
    }

    /// The value of that member; nil if there are no warnings.
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

    /// The schema of that member.
    static let schema: JSONValue = [
        "type": "array", "items": ["$ref": "#/components/schemas/RejectedEvent"],
        "description":
            "Events that were stored otherwise than they were sent: with the code time_replaced, those whose time could not be read.",
    ]
}
