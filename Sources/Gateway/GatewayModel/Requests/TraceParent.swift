internal import CountersignCore

package struct TraceParent: Sendable, Equatable {
    /// 32 lower-case hexadecimal digits, not all zero.
    package let traceID: String
    /// The id of the span: 16 lower-case hexadecimal digits, not all zero.
    package let spanID: String
    package let isSampled: Bool

    /// Parses a `traceparent` header; nil when it is not valid, and the header is then ignored.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, Self.isHex(parts[0], 2), parts[0] != "ff",
            parts[0] != "00" || parts.count == 4,
            Self.isHex(parts[1], 32), parts[1].utf8.contains(where: { $0 != UInt8(ascii: "0") }),
            Self.isHex(parts[2], 16), parts[2].utf8.contains(where: { $0 != UInt8(ascii: "0") }),
            Self.isHex(parts[3], 2), let flags = UInt8(parts[3], radix: 16)
        else { return nil }
        traceID = String(parts[1])
        spanID = String(parts[2])
        isSampled = flags & 1 != 0
    }

    package init(traceID: String, spanID: UInt64, isSampled: Bool) {
        self.traceID = traceID
        self.spanID = Self.hexadecimal(max(spanID, 1))
        self.isSampled = isSampled
    }

    /// The value of a `traceparent` header, or of `traceresponse` (W3C Trace Context Level 2, a draft).
    package var text: String { "00-\(traceID)-\(spanID)-\(isSampled ? "01" : "00")" }

    static func hexadecimal(_ number: UInt64) -> String {
        let hex = String(number, radix: 16)
        return String(repeating: "0", count: 16 - hex.count) + hex
    }

    private static func isHex(_ text: Substring, _ count: Int) -> Bool {
        text.utf8.count == count
            && text.utf8.allSatisfy { byte in
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
            }
    }
}
