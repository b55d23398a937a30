/// Events to replay, and problems of the input.
struct Replay: Sendable {
    struct Problem: Sendable, Equatable {
        /// The line, counted from 1.
        let line: Int
        let reason: String
    }

    let source: String
    var events: [ReplayEvent]
    var problems: [Problem] = []
    /// The line of each event in the input, from 1; empty if the input has no lines.
    var lines: [Int] = []
    /// Whether the input is truncated. The last of ``problems`` then names the line of the truncation.
    var isCutShort = false
}
