internal import Foundation

/// Operations on JSON text that a parser has rejected as a whole. They do not check that values are valid.
package enum JSONText {
    package struct Part {
        /// The bytes between the quotes of a member's name; nil for an element of an array.
        package let name: Range<Int>?
        package fileprivate(set) var value: Range<Int>
    }

    /// Splits the object or array at `offset`, in linear time. Beyond `most` parts, one last part covers the others.
    /// Returns nil if there is no object or array, or its brackets, quotes or separators do not match.
    package static func parts(
        of text: UnsafeRawBufferPointer, at offset: Int, most: Int
    ) -> [Part]? {
        var scanner = Scanner(text: text, at: offset)
        guard let opening = scanner.next, opening == .openBrace || opening == .openBracket else { return nil }
        let closing: UInt8 = opening == .openBrace ? .closeBrace : .closeBracket
        scanner.at += 1
        scanner.skipSpace()
        var parts: [Part] = []
        guard scanner.next != closing else { return parts }
        while true {
            var name: Range<Int>?
            if opening == .openBrace {
                let start = scanner.at
                guard scanner.next == .quote, scanner.skipString() else { return nil }
                name = (start + 1)..<(scanner.at - 1)
                scanner.skipSpace()
                guard scanner.take(.colon) else { return nil }
                scanner.skipSpace()
            }
            let start = scanner.at
            guard scanner.skipValue() else { return nil }
            if parts.count > most {
                parts[most].value = parts[most].value.lowerBound..<scanner.at
            } else {
                parts.append(Part(name: name, value: start..<scanner.at))
            }
            scanner.skipSpace()
            if scanner.take(closing) { return parts }
            guard scanner.take(.comma) else { return nil }
            scanner.skipSpace()
        }
    }

    /// Replaces the escape of each unpaired surrogate (RFC 8259, section 8.2) with the escape of U+FFFD,
    /// which has the same length. Returns the offsets of the replaced escapes, in order.
    package static func replaceUnpairedSurrogates(in text: UnsafeMutableRawBufferPointer) -> [Int] {
        guard let base = text.baseAddress else { return [] }
        var replaced: [Int] = []
        var at = 0
        while at < text.count, let found = memchr(base + at, Int32(UInt8.backslash), text.count - at) {
            at = UnsafeRawPointer(found) - UnsafeRawPointer(base)
            guard let unit = unit(in: text, at: at) else {
                at += 2
                continue
            }
            if 0xD800..<0xDC00 ~= unit, let low = Self.unit(in: text, at: at + 6), 0xDC00..<0xE000 ~= low {
                at += 12
                continue
            }
            if 0xD800..<0xE000 ~= unit {
                text[(at + 2)..<(at + 6)].copyBytes(from: "fffd".utf8)
                replaced.append(at)
            }
            at += 6
        }
        return replaced
    }

    /// The code unit of the escape `\uXXXX` at `at`; nil for other text.
    private static func unit(in text: UnsafeMutableRawBufferPointer, at: Int) -> UInt16? {
        guard at + 6 <= text.count, text[at] == .backslash, text[at + 1] == UInt8(ascii: "u") else {
            return nil
        }
        var unit: UInt16 = 0
        for byte in text[(at + 2)..<(at + 6)] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else { return nil }
            unit = unit << 4 | UInt16(digit)
        }
        return unit
    }

    private struct Scanner {
        let text: UnsafeRawBufferPointer
        var at: Int
        /// The closing brackets of the open objects and arrays.
        private var closing: [UInt8] = []

        init(text: UnsafeRawBufferPointer, at: Int) {
            self.text = text
            self.at = at
        }

        var next: UInt8? { at < text.count ? text[at] : nil }

        mutating func take(_ byte: UInt8) -> Bool {
            guard next == byte else { return false }
            at += 1
            return true
        }

        mutating func skipSpace() {
            while at < text.count, text[at].isJSONSpace { at += 1 }
        }

        /// Returns false if the string does not end.
        mutating func skipString() -> Bool {
            at += 1
            while at < text.count {
                switch text[at] {
                case .quote:
                    at += 1
                    return true
                case .backslash: at += 2
                default: at += 1
                }
            }
            return false
        }

        /// Returns false if there is no value or its brackets do not match.
        mutating func skipValue() -> Bool {
            switch next {
            case nil: return false
            case UInt8.quote: return skipString()
            case UInt8.openBrace, UInt8.openBracket: return skipBrackets()
            default:
                let start = at
                while at < text.count, !text[at].isJSONSpace, !text[at].isJSONStructure { at += 1 }
                return at > start
            }
        }

        private mutating func skipBrackets() -> Bool {
            closing.removeAll(keepingCapacity: true)
            while at < text.count {
                let byte = text[at]
                switch byte {
                case .quote:
                    guard skipString() else { return false }
                    continue
                case .openBrace: closing.append(.closeBrace)
                case .openBracket: closing.append(.closeBracket)
                case .closeBrace, .closeBracket:
                    guard closing.popLast() == byte else { return false }
                default: break
                }
                at += 1
                if closing.isEmpty { return true }
            }
            return false
        }
    }
}

extension UInt8 {
    fileprivate static let quote = UInt8(ascii: "\"")
    fileprivate static let backslash = UInt8(ascii: "\\")
    fileprivate static let comma = UInt8(ascii: ",")
    fileprivate static let colon = UInt8(ascii: ":")
    fileprivate static let openBrace = UInt8(ascii: "{")
    fileprivate static let closeBrace = UInt8(ascii: "}")
    fileprivate static let openBracket = UInt8(ascii: "[")
    fileprivate static let closeBracket = UInt8(ascii: "]")

    fileprivate var isJSONSpace: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }

    fileprivate var isJSONStructure: Bool {
        switch self {
        case .quote, .comma, .colon, .openBrace, .closeBrace, .openBracket, .closeBracket: true
        default: false
        }
    }
}
