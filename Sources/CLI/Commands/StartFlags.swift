internal import CountersignCore

extension Flag {
    fileprivate static let startFrom = Flag(
        "from", .choice(["start", "end"]), help: "start: before the oldest event; end: after the newest")
    fileprivate static let startTime = Flag(
        "time", .text("TIME"),
        help: "with events received at or after this time: 2026-11-21T08:30:00Z, or 10m, 2h, 7d ago")
    fileprivate static let startPosition = Flag(
        "position", .text("POSITION"), help: "after the event at this position")

    static let start = [startFrom, startTime, startPosition]
}

extension Invocation {
    /// The start as a member of a request's body; empty without a flag. Throws `usage` for two flags.
    func start() throws -> JSONObject {
        var body: JSONObject = [:]
        body["from"] = try json(of: .startFrom)
        body["time_ms"] = try time(of: .startTime).map { .integer($0) }
        body["position"] = try json(of: .startPosition)
        guard body.count <= 1 else {
            throw CommandError(
                .usage, "two starting points were given", hint: "give one of --from, --time, --position")
        }
        return body
    }
}
