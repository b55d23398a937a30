internal import CountersignCore
package import Foundation

/// Writes and reads instants as text. Does not use a formatter, which would be slow for each recorded event.
package enum Timestamp {
    /// Appends a time such as `2026-01-31T23:59:59.999Z` (RFC 3339), rounded to milliseconds. Instants outside of the
    /// years 0 to 9999 are written as the nearest valid one.
    package static func write(_ date: Date, to output: inout [UInt8]) {
        // Rounds to the nearest, because a `Date` is a binary fraction. Rounding down could lose a millisecond.
        RFC3339.write(milliseconds: Milliseconds(date).count, to: &output)
    }

    /// Reads only the preferred form of an HTTP date (IMF-fixdate, RFC 9110, section 5.6.7).
    package static func date(fromHTTP text: String) -> Date? {
        HTTPDate.seconds(text).map { Date(timeIntervalSince1970: TimeInterval($0)) }
    }
}
