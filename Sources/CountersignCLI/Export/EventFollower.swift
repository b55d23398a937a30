internal import CountersignCore

/// Prints events with the position after each, and goes on as more are stored.
struct EventFollower: Sendable {
    private struct State {
        var position: String?
        /// The number of the event that the position is after; 0 until one was seen.
        var sequence: Int64 = 0
        var count = 0
        var hasMissed = false

        mutating func move(to position: String, _ sequence: Int64) {
            if sequence > self.sequence { (self.position, self.sequence) = (position, sequence) }
        }
    }

    let admin: any AdminClient
    let app: String
    /// Which events, and how they are shown.
    let query: [(name: String, value: String?)]
    let io: CommandIO
    private let state: Lock<State>

    /// `position` is what an earlier run has said or printed last; nil begins with the oldest event.
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

    /// Up to here all events were printed or left out by the filters; nil before the first.
    var position: String? { state.withLock { $0.position } }
    var count: Int { state.withLock { $0.count } }
    /// True when retention has deleted events after the position before they were printed.
    var hasMissed: Bool { state.withLock { $0.hasMissed } }

    /// Prints the events that there are after the position.
    func printNew() async throws {
        let newest = try await admin.items("apps", app, "events", limit: 1).first
        guard let newest else {
            // A position that is none is refused although there is nothing after it.
            if position != nil { try await printAll() }
            return
        }
        guard let place = newest["position"].text, let sequence = newest["seq"].integer else {
            throw CommandError(
                .failed, "the gateway's answer has no positions",
                hint: "run this version's gateway on the folder")
        }
        guard sequence > state.withLock({ $0.sequence }) else { return }
        try await printAll()
        // What the filters leave out is passed too, so that the next look does not begin there again.
        state.withLock { $0.move(to: place, sequence) }
    }

    private func printAll() async throws {
        let lines = Lock(TextPieces())
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
                if entry?["events_missed"] == .bool(true) { sayMissed() }
                try io.print(json: line)
                state.withLock { state in
                    state.move(to: position, sequence)
                    state.count += 1
                }
            }
        }
        // Without an event after the gap to say it of.
        let isMissing = fields.contains { $0.name.lowercased() == Self.missed && $0.value == "true" }
        guard isMissing, count == before else { return }
        sayMissed()
        // Nothing that is kept came before what comes next, and the gap is told once.
        state.withLock { $0.position = nil }
    }

    private static let missed = "x-countersign-events-missed"

    private func sayMissed() {
        let position = state.withLock { state in
            state.hasMissed = true
            return state.position
        }
        io.say(
            "Retention deleted events after \(position ?? "start") before they were exported: they are missing here."
        )
    }
}
