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
    static let schemas: [String: JSONValue] = [
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
}
