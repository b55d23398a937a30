internal import CountersignCore
package import Foundation

/// Instants as text, without a formatter object: one is made for each recorded event.
package enum Timestamp {
    /// `2026-01-31T23:59:59.999Z` (RFC 3339), to the nearest millisecond, appended to `output`.
    ///
    /// Instants outside of the years 0 to 9999 are written as the nearest one inside.
    package static func write(_ date: Date, to output: inout [UInt8]) {
        // Rounded down, a whole number of milliseconds could lose one: a `Date` is a binary fraction of seconds.
        let range = RFC3339.instants
        let milliseconds = min(max(Milliseconds(date).count, range.lowerBound), range.upperBound - 1)
        RFC3339.write(milliseconds: milliseconds, to: &output)
    }

    /// Reads an HTTP date in its preferred form; nil for anything else.
    package static func date(fromHTTP text: String) -> Date? {
        HTTPDate.seconds(text).map { Date(timeIntervalSince1970: TimeInterval($0)) }
    }
}
