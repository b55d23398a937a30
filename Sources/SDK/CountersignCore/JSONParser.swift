/// A parser of JSON text (RFC 8259).
///
/// Integers beyond 64 bits become text, so that no digit is lost. A number beyond the range of `Double` becomes null,
/// and half of a surrogate pair becomes U+FFFD. Of several members with one name, the last one counts.
package struct JSONParser {
    /// Deeper arrays and objects become null and are not validated.
    private static let maximumLevels = 128

    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0

    /// Nil if the text is not JSON in UTF-8. A byte order mark is ignored.
    package static func value(_ bytes: [UInt8]) -> JSONValue? {
        // Decoding repairs invalid UTF-8, which changes the bytes.
        guard String(decoding: bytes, as: UTF8.self).utf8.elementsEqual(bytes) else { return nil }
        // The type is written out: `nil` is also a literal of `JSONValue`.
        return bytes.withUnsafeBufferPointer { buffer -> JSONValue? in
            var parser = JSONParser(bytes: buffer)
            if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { parser.position = 3 }
            guard let value = parser.value(levels: Self.maximumLevels) else { return nil }
            parser.skipSpace()
            guard parser.position == buffer.count else { return nil }
            return value
        }
    }

    private init(bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func take(_ byte: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: byte) else { return false }
        position += 1
        return true
    }

    private mutating func takeWord(_ word: StaticString) -> Bool {
        let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard bytes[position...].starts(with: word) else { return false }
        position += word.count
        return true
    }

    private mutating func value(levels: Int) -> JSONValue? {
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return levels > 0 ? object(levels: levels - 1) : skipBrackets()
        case UInt8(ascii: "["): return levels > 0 ? array(levels: levels - 1) : skipBrackets()
        case UInt8(ascii: "\""): return string().map { .string($0) }
        case UInt8(ascii: "t"): return takeWord("true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return takeWord("false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return takeWord("null") ? .null : nil
        default: return number()
        }
    }

    private mutating func object(levels: Int) -> JSONValue? {
        position += 1
        var members: JSONObject = [:]
        skipSpace()
        if take("}") { return .object(members) }
        repeat {
            skipSpace()
            guard let name = string() else { return nil }
            skipSpace()
            guard take(":"), let value = value(levels: levels) else { return nil }
            members[name] = value
            skipSpace()
        } while take(",")
        return take("}") ? .object(members) : nil
    }

    private mutating func array(levels: Int) -> JSONValue? {
        position += 1
        var elements: [JSONValue] = []
        skipSpace()
        if take("]") { return .array(elements) }
        repeat {
            guard let element = value(levels: levels) else { return nil }
            elements.append(element)
            skipSpace()
        } while take(",")
        return take("]") ? .array(elements) : nil
    }

    /// Skips an array or object without recursion. Returns nil for a missing bracket or an invalid string.
    private mutating func skipBrackets() -> JSONValue? {
        var open = 0
        while let byte = next {
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["): open += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): open -= 1
            case UInt8(ascii: "\""):
                guard skipString() != nil else { return nil }
                continue
            default: break
            }
            position += 1
            if open == 0 { return .null }
        }
        return nil
    }

    /// Returns the content without the quotes, and whether it has escapes.
    private mutating func skipString() -> (content: Range<Int>, hasEscapes: Bool)? {
        guard take("\"") else { return nil }
        let start = position
        var hasEscapes = false
        while let byte = next, byte >= 0x20 {
            if byte == UInt8(ascii: "\"") {
                position += 1
                return (start..<(position - 1), hasEscapes)
            }
            if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                position += 1
            }
            position += 1
        }
        return nil
    }

    private mutating func string() -> String? {
        guard let (content, hasEscapes) = skipString() else { return nil }
        let text = UnsafeBufferPointer(rebasing: bytes[content])
        return hasEscapes ? Self.unescaped(text) : String(decoding: text, as: UTF8.self)
    }

    private static func unescaped(_ text: UnsafeBufferPointer<UInt8>) -> String? {
        var output: [UInt8] = []
        output.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            let byte = text[index]
            index += 1
            guard byte == UInt8(ascii: "\\") else {
                output.append(byte)
                continue
            }
            guard index < text.count else { return nil }
            let escape = text[index]
            index += 1
            switch escape {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): output.append(escape)
            case UInt8(ascii: "b"): output.append(0x08)
            case UInt8(ascii: "f"): output.append(0x0C)
            case UInt8(ascii: "n"): output.append(0x0A)
            case UInt8(ascii: "r"): output.append(0x0D)
            case UInt8(ascii: "t"): output.append(0x09)
            case UInt8(ascii: "u"):
                guard let unit = codeUnit(text, at: index) else { return nil }
                index += 4
                var scalar = Unicode.Scalar(UInt32(unit)) ?? "\u{FFFD}"
                if UTF16.isLeadSurrogate(unit), index + 1 < text.count, text[index] == UInt8(ascii: "\\"),
                    text[index + 1] == UInt8(ascii: "u"), let low = codeUnit(text, at: index + 2),
                    UTF16.isTrailSurrogate(low)
                {
                    scalar = UTF16.decode(UTF16.EncodedScalar([unit, low]))
                    index += 6
                }
                output.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            default: return nil
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func codeUnit(_ text: UnsafeBufferPointer<UInt8>, at index: Int) -> UInt16? {
        guard index + 4 <= text.count else { return nil }
        var unit: UInt16 = 0
        for byte in text[index..<(index + 4)] {
            guard byte < 0x80, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
            unit = unit << 4 | UInt16(digit)
        }
        return unit
    }

    private mutating func number() -> JSONValue? {
        let start = position
        _ = take("-")
        guard let digits = skipDigits(), digits.count == 1 || bytes[digits.lowerBound] != UInt8(ascii: "0")
        else { return nil }
        var isInteger = true
        if take(".") {
            isInteger = false
            guard skipDigits() != nil else { return nil }
        }
        if take("e") || take("E") {
            isInteger = false
            _ = take("+") || take("-")
            guard skipDigits() != nil else { return nil }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger { return Int64(text).map { .integer($0) } ?? .string(text) }
        guard let number = Double(text), number.isFinite else { return .null }
        return Int64(exactly: number).map { .integer($0) } ?? .number(number)
    }

    private mutating func skipDigits() -> Range<Int>? {
        let start = position
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        return position > start ? start..<position : nil
    }
}
