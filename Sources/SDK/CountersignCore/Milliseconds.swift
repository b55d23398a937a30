package import Foundation

/// A number of milliseconds, since 1970 or of a duration. Clamps values to the range of `Int64`, so that a number from
/// a server or a file cannot trap.
package struct Milliseconds: Hashable, Comparable, Sendable {
    package let count: Int64

    package init(_ count: Int64) {
        self.count = count
    }

    /// Rounds to the nearest.
    package init(_ count: Double) {
        let rounded = count.rounded()
        self.count = Int64(exactly: rounded) ?? (rounded > 0 ? .max : rounded < 0 ? .min : 0)
    }

    /// Rounds down, so that no duration becomes longer.
    package init(seconds: TimeInterval) {
        self.init((seconds * 1_000).rounded(.down))
    }

    package init(seconds: some BinaryInteger) {
        let (count, overflows) = Int64(clamping: seconds).multipliedReportingOverflow(by: 1_000)
        self.count = overflows ? (seconds < 0 ? .min : .max) : count
    }

    /// Rounds to the nearest.
    package init(_ instant: Date) {
        self.init(instant.timeIntervalSince1970 * 1_000)
    }

    package var seconds: TimeInterval { TimeInterval(count) / 1_000 }
    package var date: Date { Date(timeIntervalSince1970: seconds) }

    package static func < (left: Milliseconds, right: Milliseconds) -> Bool { left.count < right.count }
}
