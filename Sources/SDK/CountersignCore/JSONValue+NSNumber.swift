internal import Foundation

extension JSONValue {
    /// An integer keeps all its digits.
    init(number: NSNumber) {
        if let decimal = number as? NSDecimalNumber {
            self.init(decimal: decimal.decimalValue)
            return
        }
        switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "B"): self = .bool(number.boolValue)
        case UInt8(ascii: "f"): self.init(float: number.floatValue)
        case UInt8(ascii: "d"): self.init(float: number.doubleValue)
        case UInt8(ascii: "C"), UInt8(ascii: "S"), UInt8(ascii: "I"), UInt8(ascii: "L"), UInt8(ascii: "Q"):
            self.init(integer: number.uint64Value)
        default:
            #if !canImport(ObjectiveC)
                // On Linux a Boolean has the type of an 8-bit integer. Apps rarely use such integers.
                if number.objCType.pointee == CChar(bitPattern: UInt8(ascii: "c")),
                    [0, 1].contains(number.int64Value)
                {
                    self = .bool(number.boolValue)
                    return
                }
            #endif
            self = .integer(number.int64Value)
        }
    }

    /// Integers beyond the range of `Int64` become text with all digits.
    init(integer: some BinaryInteger) {
        self = Int64(exactly: integer).map { .integer($0) } ?? .string("\(integer)")
    }

    /// The shortest digits that represent the number; null for NaN and infinity.
    init(float: some BinaryFloatingPoint) {
        // Converts through text, because the `Float` 0.1 has other digits as a `Double`.
        let number = (float as? Double) ?? Double("\(float)")
        self = number.flatMap { $0.isFinite ? .number($0) : nil } ?? .null
    }

    /// Text with all digits for integers beyond 64 bits and for fractions that a `Double` changes; null for NaN.
    init(decimal: Decimal) {
        let text = decimal.description
        if decimal.isNaN {
            self = .null
        } else if let integer = Int64(text) {
            self = .integer(integer)
        } else if let number = Double(text), text.utf8.contains(UInt8(ascii: ".")),
            Decimal(string: "\(number)") == decimal
        {
            self = .number(number)
        } else {
            self = .string(text)
        }
    }
}
