package import Foundation

/// Instants as text, without a formatter object: one is made for each recorded event.
package enum Timestamp {
    /// `2026-01-31T23:59:59.999Z` (RFC 3339), appended to `output`.
    ///
    /// Instants outside of the years 0 to 9999 are written as the nearest one inside.
    package static func write(_ date: Date, to output: inout [UInt8]) {
        let seconds = min(max(date.timeIntervalSince1970, -62_167_219_200), 253_402_300_799.999)
        let milliseconds = Int64((seconds * 1_000).rounded(.down))
        let (day, rest) = flooredDivision(milliseconds, 86_400_000)
        let (year, month, monthDay) = civil(fromDay: day)
        func digits(_ value: Int64, _ count: Int, _ end: Character? = nil) {
            var divisor: Int64 = 1
            for _ in 1..<count { divisor *= 10 }
            while divisor > 0 {
                output.append(UInt8(ascii: "0") + UInt8(value / divisor % 10))
                divisor /= 10
            }
            if let end = end?.asciiValue { output.append(end) }
        }
        digits(year, 4, "-")
        digits(month, 2, "-")
        digits(monthDay, 2, "T")
        digits(rest / 3_600_000, 2, ":")
        digits(rest / 60_000 % 60, 2, ":")
        digits(rest / 1_000 % 60, 2, ".")
        digits(rest % 1_000, 3, "Z")
    }

    /// Reads an HTTP date in its preferred form, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
    ///
    /// - Returns: Nil for anything else; the two obsolete forms are not read.
    static func date(fromHTTP text: String) -> Date? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[0].hasSuffix(","), parts[5] == "GMT",
            let day = Int64(parts[1]), (1...31).contains(day),
            let month = months.firstIndex(of: String(parts[2])),
            let year = Int64(parts[3]), (1970...9999).contains(year)
        else { return nil }
        let time = parts[4].split(separator: ":", omittingEmptySubsequences: false).compactMap { Int64($0) }
        guard time.count == 3, (0..<24).contains(time[0]), (0..<60).contains(time[1]),
            (0...60).contains(time[2])
        else { return nil }
        let days = self.day(year: year, month: Int64(month) + 1, day: day)
        return Date(
            timeIntervalSince1970: TimeInterval(days * 86_400 + time[0] * 3_600 + time[1] * 60 + time[2]))
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func flooredDivision(_ value: Int64, _ divisor: Int64) -> (quotient: Int64, rest: Int64) {
        let rest = ((value % divisor) + divisor) % divisor
        return ((value - rest) / divisor, rest)
    }

    // The two below count in years that begin in March, so that a leap day is the last one of its year, and in eras of
    // 400 years (146,097 days), which are all alike. Day 0 is 1970-01-01; 719,468 days lie between it and 0000-03-01.

    private static func civil(fromDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = flooredDivision(day + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1
        )
    }

    private static func day(year: Int64, month: Int64, day: Int64) -> Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = flooredDivision(marchYear, 400)
        let marchMonth = month > 2 ? month - 3 : month + 9
        let dayOfYear = (153 * marchMonth + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
