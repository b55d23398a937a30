/// Points in time as text (RFC 3339, section 5.6), to the millisecond.
package enum RFC3339 {
    /// Milliseconds since 1970, or nil when `text` is not a date, `T`, a time and `Z` or an offset.
    ///
    /// Years 0000 to 9999. Digits behind the milliseconds are cut. A leap second counts as the second after it.
    package static func milliseconds(_ text: some Collection<UInt8>) -> Int64? {
        text.withContiguousStorageIfAvailable(parse) ?? Array(text).withUnsafeBufferPointer(parse)
    }

    private static func parse(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
        var digits = Reader(bytes: text)
        guard let year = digits.number(4), digits.take("-"), let month = digits.number(2), digits.take("-"),
            let day = digits.number(2), digits.take("T") || digits.take("t") || digits.take(" "),
            let hour = digits.number(2), digits.take(":"), let minute = digits.number(2), digits.take(":"),
            let second = digits.number(2),
            (1...12).contains(month), day >= 1, day <= days(in: month, of: year), hour < 24, minute < 60,
            second <= 60
        else { return nil }
        var fraction: Int64 = 0
        if digits.take(".") {
            guard let value = digits.milliseconds() else { return nil }
            fraction = value
        }
        var offset: Int64 = 0
        if !(digits.take("Z") || digits.take("z")) {
            let sign: Int64 = digits.take("+") ? 1 : -1
            guard sign == 1 || digits.take("-"), let hours = digits.number(2), digits.take(":"),
                let minutes = digits.number(2), hours < 24, minutes < 60
            else { return nil }
            offset = sign * (hours * 60 + minutes) * 60_000
        }
        guard digits.isAtEnd else { return nil }
        let seconds = dayNumber(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
        return seconds * 1_000 + fraction - offset
    }

    /// The point in time in UTC with three digits for milliseconds, such as `2026-11-21T08:30:00.000Z`.
    ///
    /// The years are 0000 to 9999.
    package static func text(milliseconds: Int64) -> String {
        let (days, ofDay) = floorDivide(milliseconds, 86_400_000)
        let (year, month, day) = date(dayNumber: days)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(24)
        func put(_ number: Int64, _ width: Int) {
            var divisor: Int64 = 1
            for _ in 1..<width { divisor *= 10 }
            while divisor > 0 {
                bytes.append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
                divisor /= 10
            }
        }
        put(year, 4)
        bytes.append(UInt8(ascii: "-"))
        put(month, 2)
        bytes.append(UInt8(ascii: "-"))
        put(day, 2)
        bytes.append(UInt8(ascii: "T"))
        put(ofDay / 3_600_000, 2)
        bytes.append(UInt8(ascii: ":"))
        put(ofDay / 60_000 % 60, 2)
        bytes.append(UInt8(ascii: ":"))
        put(ofDay / 1_000 % 60, 2)
        bytes.append(UInt8(ascii: "."))
        put(ofDay % 1_000, 3)
        bytes.append(UInt8(ascii: "Z"))
        return String(decoding: bytes, as: UTF8.self)
    }

    private struct Reader {
        let bytes: UnsafeBufferPointer<UInt8>
        var index = 0

        var isAtEnd: Bool { index == bytes.count }

        mutating func take(_ character: Unicode.Scalar) -> Bool {
            guard index < bytes.count, bytes[index] == UInt8(ascii: character) else { return false }
            index += 1
            return true
        }

        mutating func number(_ width: Int) -> Int64? {
            guard index + width <= bytes.count else { return nil }
            var value: Int64 = 0
            for byte in bytes[index..<index + width] {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            }
            index += width
            return value
        }

        mutating func milliseconds() -> Int64? {
            let start = index
            var value: Int64 = 0
            while index < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[index]) {
                if index - start < 3 { value = value * 10 + Int64(bytes[index] - UInt8(ascii: "0")) }
                index += 1
            }
            guard index > start else { return nil }
            for _ in min(3, index - start)..<3 { value *= 10 }
            return value
        }
    }

    private static func days(in month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    // The Gregorian calendar in eras of 400 years, which have 146,097 days; a year begins in March, so that the leap
    // day is its last.

    private static func dayNumber(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let (era, ofEra) = floorDivide(shifted, 400)
        let ofYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    private static func date(dayNumber: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, ofEra) = floorDivide(dayNumber + 719_468, 146_097)
        let yearOfEra = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * ofYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, ofYear - (153 * shifted + 2) / 5 + 1)
    }

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> (Int64, Int64) {
        let remainder = value % divisor
        return remainder < 0 ? (value / divisor - 1, remainder + divisor) : (value / divisor, remainder)
    }
}
