internal import CountersignCore

/// Prints events with their positions, and continues when new ones are stored.
struct EventFollower: Sendable {
    private struct State {
        var position: String?
        /// The last sequence number that was printed or skipped; 0 before the first.
        var sequence: Int64 = 0
        var count = 0
        var isAfterGap = false

        mutating func move(to position: String, _ sequence: Int64) {
            if sequence > self.sequence { (self.position, self.sequence) = (position, sequence) }
        }
    }

    let admin: any AdminClient
    let app: String
    let query: [(name: String, value: String?)]
    let io: CommandIO
    private let state: Lock<State>

    /// `position` is from an earlier run; nil begins with the oldest event.
    init(
        _ admin: any AdminClient, app: String, after position: String?,
        query: [(name: String, value: String?)], io: CommandIO
    ) {
        self.admin = admin
        self.app = app
        self.query = query
        self.io = io
        state = Lock(State(position: position))
    }

    /// The position up to which all matching events were printed; nil if the next export starts with the oldest.
    var position: String? { state.withLock { $0.position } }
    var count: Int { state.withLock { $0.count } }
    /// Whether retention deleted events after the position before they were printed.
    var isAfterGap: Bool { state.withLock { $0.isAfterGap } }

    func printNew() async throws {
        let newest = try await admin.items("apps", app, "events", limit: 1).first
        guard let newest else {
            // A malformed position must be rejected even if there are no events.
            if position != nil { try await printAll() }
            return
        }
        guard let position = newest["position"].text, let sequence = newest["seq"].integer else {
            throw CommandError(
                .failed, "the gateway's answer has no positions",
                hint: "run this version's gateway on the folder")
        }
        guard sequence > state.withLock({ $0.sequence }) else { return }
        try await printAll()
        // Skips events that do not match, so that the next check does not search them again.
        state.withLock { $0.move(to: position, sequence) }
    }

    private func printAll() async throws {
        let lines = Lock(LineBuffer())
        let before = count
        let fields = try await admin.stream(
            AdminRequest(
                method: "GET", path: ["apps", app, "events", "export"],
                query: query + [("after", position ?? "start")])
        ) { bytes in
            try Task.checkCancellation()
            for line in lines.withLock({ $0.lines(bytes) }) {
                let entry = JSONValue(parsing: line, maximumDepth: 1_024)
                guard let position = entry?["position"].text, let sequence = entry?["seq"].integer else {
                    throw CommandError(.failed, "a line of the answer has no position")
                }
                if entry?["events_missed"] == .bool(true) { reportGap() }
                try io.print(json: line)
                state.withLock { state in
                    state.move(to: position, sequence)
                    state.count += 1
                }
            }
        }
        // Without an event after the gap, only the header field reports the gap.
        let isMissing = fields.contains { $0.name.lowercased() == Self.missed && $0.value == "true" }
        guard isMissing, count == before else { return }
        reportGap()
        // Continues at the oldest event. With the old position, the next response would report the gap again.
        state.withLock { $0.position = nil }
    }

    private static let missed = "x-countersign-events-missed"

    private func reportGap() {
        let position = state.withLock { state in
            state.isAfterGap = true
            return state.position
        }
        io.say(
            "Retention deleted events after \(position ?? "start") before they were exported: they are missing here."
        )
    }
}
