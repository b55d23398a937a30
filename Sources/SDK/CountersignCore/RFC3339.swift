/// Points in time as text (RFC 3339, section 5.6), to the millisecond.
package enum RFC3339 {
    /// The years 0000 to 9999, in milliseconds since 1970.
    package static let instants: Range<Int64> = -62_167_219_200_000..<253_402_300_800_000

    /// Nil when `text` is not a date, `T` or a space, a time and `Z` or an offset, in the years 0000 to 9999. Letters
    /// may be in lower case. Digits after the milliseconds are cut off. A leap second counts as the second after it.
    package static func milliseconds(_ text: String, isLenient: Bool = false) -> Int64? {
        var text = text
        return text.withUTF8 { milliseconds($0, isLenient: isLenient) }
    }

    /// `isLenient` also accepts: an offset without a colon or minutes, a space before the offset, a time without
    /// seconds, and a comma before the fraction.
    package static func milliseconds(
        _ text: UnsafeBufferPointer<UInt8>, isLenient: Bool = false
    ) -> Int64? {
        var digits = Reader(bytes: text)
        guard let year = digits.number(4), digits.take("-"), let month = digits.number(2), digits.take("-"),
            let day = digits.number(2), digits.take("T") || digits.take("t") || digits.take(" "),
            let hour = digits.number(2), digits.take(":"), let minute = digits.number(2)
        else { return nil }
        var second: Int64 = 0
        if digits.take(":") {
            guard let number = digits.number(2) else { return nil }
            second = number
        } else if !isLenient {
            return nil
        }
        guard (1...12).contains(month), day >= 1, day <= days(in: month, of: year), hour < 24, minute < 60,
            second <= 60
        else { return nil }
        var fraction: Int64 = 0
        if digits.take(".") || isLenient && digits.take(",") {
            guard let value = digits.milliseconds() else { return nil }
            fraction = value
        }
        if isLenient { _ = digits.take(" ") }
        var offset: Int64 = 0
        if !(digits.take("Z") || digits.take("z")) {
            let sign: Int64 = digits.take("+") ? 1 : -1
            guard sign == 1 || digits.take("-"), let hours = digits.number(2) else { return nil }
            var minutes: Int64 = 0
            if digits.take(":") || isLenient && !digits.isAtEnd {
                guard let number = digits.number(2) else { return nil }
                minutes = number
            } else if !isLenient {
                return nil
            }
            guard hours < 24, minutes < 60 else { return nil }
            offset = sign * (hours * 60 + minutes) * 60_000
        }
        guard digits.isAtEnd else { return nil }
        let days = CalendarDay(year: year, month: month, day: day).number
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second
        let milliseconds = seconds * 1_000 + fraction - offset
        return instants.contains(milliseconds) ? milliseconds : nil
    }

    /// UTC with three digits for milliseconds, such as `2026-11-21T08:30:00.000Z`. Limited to `instants`.
    package static func text(milliseconds: Int64) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(24)
        write(milliseconds: milliseconds, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    package static func write(milliseconds: Int64, to output: inout [UInt8]) {
        let instant = min(max(milliseconds, instants.lowerBound), instants.upperBound - 1)
        let (days, ofDay) = CalendarDay.floorDivide(instant, 86_400_000)
        let date = CalendarDay(number: days)
        func put(_ number: Int64, _ width: Int, _ end: Unicode.Scalar) {
            var divisor: Int64 = 1
            for _ in 1..<width { divisor *= 10 }
            while divisor > 0 {
                output.append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
                divisor /= 10
            }
            output.append(UInt8(ascii: end))
        }
        put(date.year, 4, "-")
        put(date.month, 2, "-")
        put(date.day, 2, "T")
        put(ofDay / 3_600_000, 2, ":")
        put(ofDay / 60_000 % 60, 2, ":")
        put(ofDay / 1_000 % 60, 2, ".")
        put(ofDay % 1_000, 3, "Z")
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
                guard byte.isASCIIDigit else { return nil }
                value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            }
            index += width
            return value
        }

        mutating func milliseconds() -> Int64? {
            let start = index
            var value: Int64 = 0
            while index < bytes.count, bytes[index].isASCIIDigit {
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
}
