/// UUIDs as text: 36 characters, in lower case (RFC 9562, section 4).
package enum UUIDText {
    private static let count = 36

    /// The 16 bytes of a UUID. Nil unless the text has the form that ``append(_:to:)`` writes; upper case
    /// is rejected.
    package static func bytes(of text: String) -> [UInt8]? {
        var text = text
        return text.withUTF8 { text in
            guard text.count == count else { return nil }
            var bytes: [UInt8] = []
            bytes.reserveCapacity(16)
            var index = 0
            while index < count {
                if isDash(index) {
                    guard text[index] == UInt8(ascii: "-") else { return nil }
                    index += 1
                }
                guard let high = digit(text[index]), let low = digit(text[index + 1]) else { return nil }
                bytes.append(high << 4 | low)
                index += 2
            }
            return bytes
        }
    }

    /// Writes the text of 16 bytes.
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
