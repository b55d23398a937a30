internal import CountersignCore
internal import CountersignJSON

struct BloomreachTime {
    enum Source {
        /// `timestamp`: an instant, equal in all tries.
        case instant
        /// `age` in seconds, which some clients recompute for each try.
        case age(Double)
        /// The time of receipt. The request has neither `timestamp` nor `age`, or the member cannot be read.
        case none
    }

    let source: Source
    let milliseconds: Int64
    let receivedMilliseconds: Int64

    /// Whether the time of receipt replaces a `timestamp` or `age` that cannot be read.
    let isReplaced: Bool

    /// The seconds from the year 0 to 1970. Subtracting more from the time of receipt can give an earlier year.
    private static let longestAge = -Double(RFC3339.instants.lowerBound / 1_000)

    /// `isUnusable` is true if `timestamp` or `age` was a number that is out of range.
    init(_ root: JSONNode, isUnusable: Bool, receivedMilliseconds: Int64) {
        self.receivedMilliseconds = receivedMilliseconds
        func member(_ name: StaticString) -> JSONNode? { root[name].flatMap { $0.isNull ? nil : $0 } }
        let timestamp = member("timestamp")
        let age = timestamp == nil && !isUnusable ? member("age") : nil
        if let timestamp, let instant = EventTime.milliseconds(timestamp, .seconds) {
            source = .instant
            milliseconds = instant
            isReplaced = false
        } else if let seconds = age?.double, abs(seconds) <= Self.longestAge {
            source = .age(seconds)
            // A client's clock that was set back makes the age negative, which is treated as 0.
            milliseconds = receivedMilliseconds - Milliseconds(max(0, seconds) * 1_000).count
            isReplaced = false
        } else {
            source = .none
            milliseconds = receivedMilliseconds
            isReplaced = isUnusable || (timestamp ?? age) != nil
        }
    }
}
