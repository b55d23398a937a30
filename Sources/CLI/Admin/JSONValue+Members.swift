internal import CountersignCore
internal import CountersignJSON

extension BinaryInteger {
    /// For display: `1 event`, `2 events`.
    func counted(_ one: String) -> String { "\(self) \(one)\(self == 1 ? "" : "s")" }
}

/// Accessors for responses of the admin API. Missing members are null.
extension JSONValue {
    /// Returns nil for text that is not JSON, has duplicate members or is nested deeper than `maximumDepth`.
    init?(parsing bytes: [UInt8], maximumDepth: Int = 64) {
        let parser = StrictJSONParser(maximumBytes: max(1, bytes.count), maximumDepth: maximumDepth)
        guard let value = try? parser.parse(bytes: bytes, { $0.value }) else { return nil }
        self = value
    }

    subscript(name: String) -> JSONValue {
        if case .object(let members) = self { members[name] ?? .null } else { .null }
    }

    var text: String? { if case .string(let text) = self { text } else { nil } }

    var integer: Int64? { if case .integer(let number) = self { number } else { nil } }

    /// A count from a server, limited to 0 through 2^53 so that sums and percentages cannot overflow.
    var count: Int64 { min(max(0, integer ?? 0), 1 << 53) }

    /// For display: text without control characters, `-` for null, else JSON.
    var shown: String {
        switch self {
        case .null: "-"
        case .string(let text): TerminalText.safe(text)
        default: shownJSON
        }
    }

    /// For display: JSON without control characters.
    var shownJSON: String { TerminalText.safe(String(decoding: bytes, as: UTF8.self)) }

    func counted(_ one: String, _ several: String? = nil) -> String {
        "\(shown) \(self == 1 ? one : several ?? one + "s")"
    }

    /// For display: seconds with a unit, `-` for null.
    var duration: String {
        switch self {
        case .number(let seconds): Int64(exactly: seconds).map(Quantity.text(seconds:)) ?? "\(seconds)s"
        default: integer.map(Quantity.text(seconds:)) ?? "-"
        }
    }

    /// For display: milliseconds since 1970 as date and time, `-` for null.
    var time: String { integer.map { RFC3339.text(milliseconds: $0) } ?? "-" }

    /// For display: the distance from `now` if it is less than 100 days, else ``time``.
    func time(from now: Int64?) -> String {
        guard let now, let integer else { return time }
        let seconds = (Double(integer) - Double(now)) / 1_000
        guard abs(seconds) < 100 * 86_400 else { return time }
        return Quantity.distance(seconds: Int64(seconds))
    }

    var isTrue: Bool { self == .bool(true) }

    var elements: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }

    func joined(_ separator: String = ", ") -> String { elements.map(\.shown).joined(separator: separator) }
}
