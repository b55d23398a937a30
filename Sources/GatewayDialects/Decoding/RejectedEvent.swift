internal import CountersignCore

/// An event that is not stored, now or ever: the sender should not send it again as it is.
struct RejectedEvent {
    /// Its place in the request, from 0.
    let index: Int
    /// A stable word in snake case.
    let code: String
    /// What is wrong with it.
    let reason: String

    /// The event's fault as a JSON object, appended to `output`.
    func write(to output: inout [UInt8]) {
        JSONValue.object([
            "index": .integer(Int64(index)), "code": .string(code), "reason": .string(reason),
        ]).write(to: &output)
    }
}
