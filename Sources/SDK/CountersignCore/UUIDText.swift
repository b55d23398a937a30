/// UUIDs as text: 36 characters, in lower case (RFC 9562, section 4).
package enum UUIDText {
    private static let count = 36

    /// Nil unless the text has the form that ``append(_:to:)`` writes; upper case is rejected.
    package static func bytes(of text: String) -> [UInt8]? {
        words(of: text).map { words in withUnsafeBytes(of: words) { Array($0) } }
    }

    /// The bytes as two words in memory order. Nil as for ``bytes(of:)``.
    package static func words(of text: String) -> (UInt64, UInt64)? {
        text.withBytes { text in
            guard text.count == count else { return nil }
            var words: (high: UInt64, low: UInt64) = (0, 0)
            var index = 0
            while index < count {
                if isDash(index) {
                    guard text[index] == UInt8(ascii: "-") else { return nil }
                    index += 1
                }
                guard let digit = digit(text[index]) else { return nil }
                words.high = words.high << 4 | words.low >> 60
                words.low = words.low << 4 | UInt64(digit)
                index += 1
            }
            return (words.high.bigEndian, words.low.bigEndian)
        }
    }

    package static func append(_ bytes: UnsafeRawBufferPointer, to output: inout [UInt8]) {
        for (index, byte) in bytes.enumerated() {
            if index == 4 || index == 6 || index == 8 || index == 10 { output.append(UInt8(ascii: "-")) }
            output.append(character(byte >> 4))
            output.append(character(byte & 0xF))
        }
    }

    private static func isDash(_ index: Int) -> Bool {
        index == 8 || index == 13 || index == 18 || index == 23
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    private static func character(_ digit: UInt8) -> UInt8 {
        digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }
}
