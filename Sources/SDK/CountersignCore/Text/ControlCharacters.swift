extension UnsafeBufferPointer<UInt8> {
    /// Whether UTF-8 text contains U+0000 to U+001F, or U+007F to U+009F.
    package var hasControlCharacter: Bool {
        var last: UInt8 = 0
        for byte in self {
            if byte < 0x20 || byte == 0x7F { return true }
            // U+0080 to U+009F are the bytes C2 80 to C2 9F.
            if last == 0xC2, byte < 0xA0 { return true }
            last = byte
        }
        return false
    }
}

extension String {
    package var hasControlCharacter: Bool {
        var text = self
        return text.withUTF8 { $0.hasControlCharacter }
    }
}
