extension UnsafeBufferPointer<UInt8> {
    /// The number of leading bytes that are printable ASCII, as a multiple of eight. Compares eight bytes at a time.
    package var printablePrefix: Int {
        let eachByte: UInt64 = 0x0101_0101_0101_0101
        var end = 0
        while end + 8 <= count {
            let word = UnsafeRawBufferPointer(self).loadUnaligned(fromByteOffset: end, as: UInt64.self)
            // The highest bit of each byte is set if the byte is not ASCII, is below 0x20 or is 0x7F.
            let others = word | (word &- 0x20 * eachByte) | (word &+ eachByte)
            if others & (0x80 * eachByte) != 0 { break }
            end += 8
        }
        return end
    }

    /// For UTF-8: U+0000 to U+001F, or U+007F to U+009F.
    package var hasControlCharacter: Bool {
        var last: UInt8 = 0
        for byte in self[printablePrefix...] {
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
