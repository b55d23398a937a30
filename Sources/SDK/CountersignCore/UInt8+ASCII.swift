extension UInt8 {
    @inlinable package var isASCIIDigit: Bool { 0x30...0x39 ~= self }

    @inlinable package var isASCIILetter: Bool { 0x61...0x7A ~= self | 0x20 }

    /// `others` must be ASCII.
    @inlinable package func isASCIIAlphanumeric(or others: StaticString = "") -> Bool {
        isASCIIDigit || isASCIILetter || others.withUTF8Buffer { $0.contains(self) }
    }

    /// The value of a hexadecimal digit in ASCII; nil for other bytes.
    @inlinable package var hexadecimalValue: UInt8? {
        if isASCIIDigit { return self - 0x30 }
        let lower = self | 0x20
        return 0x61...0x66 ~= lower ? lower - 0x61 + 10 : nil
    }
}
