extension [UInt8] {
    package var hexadecimal: String {
        let digits = Array<UInt8>("0123456789abcdef".utf8)
        return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
    }

    init?(hexadecimal text: String) {
        let values = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
        guard values.count.isMultiple(of: 2), !values.contains(nil) else { return nil }
        self = stride(from: 0, to: values.count, by: 2).map {
            UInt8((values[$0] ?? 0) << 4 | (values[$0 + 1] ?? 0))
        }
    }
}
