internal import CountersignCore
internal import CountersignJSON

/// The time of an event. A time without an offset is ambiguous and therefore unusable, and so is a time outside the
/// years 0 to 9999. An event with an unusable time is stored with the time of receipt, and the response has a warning.
enum EventTime {
    private static let dates = RFC3339.instants

    /// The unit of a numeric time.
    enum Unit {
        /// Seconds, as the protocol defines. A number too large for a date is read as milliseconds.
        case seconds
        /// Seconds or milliseconds, distinguished by the size of the number. Covers the years 1973 to 2286.
        case eitherOne
    }

    /// Milliseconds since 1970; nil if the time is unusable.
    static func milliseconds(_ node: JSONNode, _ unit: Unit = .eitherOne) -> Int64? {
        let found: Int64?
        if let number = node.double {
            found = milliseconds(number, unit)
        } else if let text = node.utf8, text.count <= 64 {
            found =
                RFC3339.milliseconds(text, isLenient: true)
                ?? number(text).flatMap { milliseconds($0, .eitherOne) }
        } else {
            found = nil
        }
        return found.flatMap { dates.contains($0) ? $0 : nil }
    }

    private static func milliseconds(_ number: Double, _ unit: Unit) -> Int64? {
        let seconds: Range<Double>
        switch unit {
        case .seconds: seconds = 0..<Double(dates.upperBound / 1_000)
        case .eitherOne: seconds = 1e8..<1e10
        }
        if seconds.contains(number) { return Milliseconds(number * 1_000).count }
        return number >= seconds.upperBound && (1e11..<1e13).contains(number)
            ? Milliseconds(number).count : nil
    }

    /// Parses text of 10 or 13 digits (present-day seconds or milliseconds), with an optional fraction. Text
    /// of 8, 12 or 14 digits is not accepted, because it may be a date.
    private static func number(_ text: UnsafeBufferPointer<UInt8>) -> Double? {
        let digits = text.prefix { $0.isASCIIDigit }.count
        guard digits == 10 || digits == 13,
            text.allSatisfy({ $0.isASCIIDigit || $0 == UInt8(ascii: ".") })
        else { return nil }
        return Double(String(decoding: text, as: UTF8.self))
    }

    static func warning(_ index: Int) -> EventWarning {
        EventWarning(
            index: index, code: "time_replaced",
            reason:
                "the time is not a date, time and offset such as 2026-11-21T08:30:00.000Z, nor a number of seconds "
                + "or milliseconds since 1970; the event has the time of receipt")
    }
}
