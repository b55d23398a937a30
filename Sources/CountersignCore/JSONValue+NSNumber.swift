internal import Foundation

extension JSONValue {
    /// A number as Objective-C hands it over: a whole one stays whole, with all its digits. Nil for one above 64 bits.
    init?(number: NSNumber) {
        if let decimal = number as? NSDecimalNumber {
            // Its own conversions go through a floating-point number.
            if let integer = Int64(decimal.stringValue) {
                self = .integer(integer)
            } else {
                self = .number(decimal.doubleValue)
            }
            return
        }
        switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "B"): self = .bool(number.boolValue)
        case UInt8(ascii: "f"), UInt8(ascii: "d"): self = .number(number.doubleValue)
        case UInt8(ascii: "C"), UInt8(ascii: "S"), UInt8(ascii: "I"), UInt8(ascii: "L"), UInt8(ascii: "Q"):
            guard let integer = Int64(exactly: number.uint64Value) else { return nil }
            self = .integer(integer)
        default:
            #if !canImport(ObjectiveC)
                // There, a truth value cannot be told from a number of 8 bits, which hardly anybody makes.
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
}
