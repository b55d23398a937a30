/// Scans JSON text for the byte ranges of values. Does not validate skipped values, read beyond the end, or recurse.
struct JSONScanner {
    private let bytes: [UInt8]
    private(set) var index = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Calls `visit` with each encoded name. `visit` must skip the value and return whether it could. Returns false
    /// if the next value is not an object.
    mutating func members(_ visit: (_ name: ArraySlice<UInt8>, inout JSONScanner) -> Bool) -> Bool {
        guard take(UInt8(ascii: "{")) else { return false }
        if take(UInt8(ascii: "}")) { return true }
        repeat {
            skipSpace()
            guard let name = string(), take(UInt8(ascii: ":")),
                visit(bytes[name].dropFirst().dropLast(), &self)
            else { return false }
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}"))
    }

    /// As `members`, for the next array.
    mutating func elements(_ visit: (inout JSONScanner) -> Bool) -> Bool {
        guard take(UInt8(ascii: "[")) else { return false }
        if take(UInt8(ascii: "]")) { return true }
        repeat {
            guard visit(&self) else { return false }
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]"))
    }

    /// Skips the next value and returns its range. Nil if the value is incomplete.
    mutating func value() -> Range<Int>? {
        skipSpace()
        let start = index
        var depth = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                guard string() != nil else { return nil }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                index += 1
                continue
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                index += 1
            case UInt8(ascii: ","), UInt8(ascii: ":"), 0x20, 0x09, 0x0A, 0x0D:
                index += 1
                continue
            default: scalar()
            }
            if depth <= 0 { return depth == 0 ? start..<index : nil }
        }
        return nil
    }

    private mutating func scalar() {
        let ends = [UInt8(ascii: ","), UInt8(ascii: "]"), UInt8(ascii: "}"), 0x20, 0x09, 0x0A, 0x0D]
        while index < bytes.count, !ends.contains(bytes[index]) { index += 1 }
    }

    private mutating func string() -> Range<Int>? {
        let start = index
        guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") else { return nil }
        index += 1
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\\"): index += 2
            case UInt8(ascii: "\""):
                index += 1
                return start..<index
            default: index += 1
            }
        }
        return nil
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard index < bytes.count, bytes[index] == byte else { return false }
        index += 1
        return true
    }

    private mutating func skipSpace() {
        while index < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[index]) { index += 1 }
    }
}
