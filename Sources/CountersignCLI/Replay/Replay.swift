/// Events to replay, and what of the input could not be used.
struct Replay: Sendable {
    /// A place in the input that is not an event.
    struct Problem: Sendable, Equatable {
        /// The line, counted from 1.
        let line: Int
        let reason: String
    }

    /// Where the events come from, in words.
    let source: String
    var events: [ReplayEvent]
    var problems: [Problem] = []
    /// Where each event stands in the input, counted from 1; empty when there is none.
    var lines: [Int] = []
    /// Whether the input breaks before its end; the last problem is where.
    var isCutShort = false
}
