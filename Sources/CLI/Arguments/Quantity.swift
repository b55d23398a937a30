enum Quantity {
    /// The unit of a number that is given without a unit.
    enum Time: String, Sendable, Equatable {
        case seconds, hours, days

        var inSeconds: Int {
            switch self {
            case .seconds: 1
            case .hours: 3_600
            case .days: 86_400
            }
        }

        var examples: String {
            switch self {
            case .seconds: "90s, 10m, 2h or 7d"
            case .hours: "12h or 7d"
            case .days: "30d or 2w"
            }
        }
    }

    private static let times = ["s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800]
    private static let sizes = [
        "": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000, "tb": 1_000_000_000_000,
        "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
    ]

    /// A text such as `90` or `2h` in whole units. Nil if the text is not a duration or the result is not whole.
    static func duration(_ text: String, in unit: Time) -> Int? {
        guard let (number, name) = parts(text) else { return nil }
        if name.isEmpty { return number }
        guard let factor = times[name] else { return nil }
        let (seconds, isTooLarge) = number.multipliedReportingOverflow(by: factor)
        guard !isTooLarge, seconds.isMultiple(of: unit.inSeconds) else { return nil }
        return seconds / unit.inSeconds
    }

    /// The inverse of ``duration(_:in:)``, in the largest exact unit: `90s`, `10m`, `1h`, `30d`.
    static func text(seconds: Int64) -> String {
        let unit = [("d", 86_400), ("h", 3_600), ("m", 60)].first { seconds.isMultiple(of: $0.1) }
        guard let unit, seconds != 0 else { return "\(seconds)s" }
        return "\(seconds / unit.1)\(unit.0)"
    }

    /// The inverse of ``size(_:)``, in the largest exact unit of TB to MB, else of TiB to KiB, else in bytes.
    static func text(bytes: Int64) -> String {
        let decimal = ["TB", "GB", "MB"].map { ($0, sizes[$0.lowercased()] ?? 1) }
        let binary = ["TiB", "GiB", "MiB", "KiB"].map { ($0, sizes[$0.lowercased()] ?? 1) }
        let unit = (decimal + binary).first { bytes.isMultiple(of: Int64($0.1)) }
        guard let unit, bytes != 0 else { return "\(bytes)B" }
        return "\(bytes / Int64(unit.1))\(unit.0)"
    }

    /// A duration for display, such as `5 min` or `2 h 5 min`.
    static func about(seconds: Int64) -> String {
        switch seconds {
        case ..<60: "\(seconds) s"
        case ..<3_600: "\(seconds / 60) min"
        case ..<86_400: "\(seconds / 3_600) h \(seconds % 3_600 / 60) min"
        default: "\(seconds / 86_400) d \(seconds % 86_400 / 3_600) h"
        }
    }

    /// A time for display, such as `in 2 h 5 min`. `seconds` is its distance from now, negative in the past.
    static func distance(seconds: Int64) -> String {
        let about = about(seconds: abs(seconds))
        return seconds > 0 ? "in \(about)" : "\(about) ago"
    }

    /// Parses a text such as `1000`, `10GB` (decimal) or `10GiB` (binary) to bytes; nil if it is not a size.
    static func size(_ text: String) -> Int? {
        guard let (number, name) = parts(text), let factor = sizes[name.lowercased()] else { return nil }
        let (bytes, isTooLarge) = number.multipliedReportingOverflow(by: factor)
        return isTooLarge ? nil : bytes
    }

    private static func parts(_ text: String) -> (number: Int, unit: String)? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        return Int(digits).map { ($0, String(text.dropFirst(digits.count))) }
    }
}
