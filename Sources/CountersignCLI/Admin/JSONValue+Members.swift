internal import CountersignCore
internal import CountersignJOSE

/// Reading what the admin API answers; what is missing is null.
extension JSONValue {
    /// Nil for what is not JSON, or has a member twice.
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

    /// For people: a text without its control characters, `-` for null, else JSON.
    var shown: String {
        switch self {
        case .null: "-"
        case .string(let text): TerminalText.safe(text)
        default: String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Seconds with a unit; `-` for null.
    var duration: String {
        switch self {
        case .number(let seconds): Int64(exactly: seconds).map(Quantity.text(seconds:)) ?? "\(seconds)s"
        default: integer.map(Quantity.text(seconds:)) ?? "-"
        }
    }

    /// Milliseconds since 1970 as a date and time; `-` for null.
    var time: String { integer.map { RFC3339.text(milliseconds: $0) } ?? "-" }

    var isTrue: Bool { self == .bool(true) }

    var elements: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }

    /// The texts of an array, for a table.
    func joined(_ separator: String = ", ") -> String { elements.map(\.shown).joined(separator: separator) }
}
