import Testing

@testable import GatewayHTTP

/// Field values are checked eight bytes at a time, so each byte is tested at every position of such a group.
struct FieldBytesTests {
    @Test func controlCharactersAreFoundAtEveryPosition() {
        for byte in UInt8.min...UInt8.max {
            let isControl = byte < 0x20 && byte != 0x09 || byte == 0x7F
            for place in 0..<19 {
                var value = [UInt8](repeating: UInt8(ascii: "a"), count: 19)
                value[place] = byte
                #expect(Self.isRejected(value) == isControl, "\(byte) at \(place)")
            }
        }
    }

    @Test func aControlCharacterIsFoundAmongAnyOtherBytes() {
        for other: UInt8 in [0x09, 0x20, 0x7E, 0x80, 0x9F, 0xFF] {
            for place in 0..<16 {
                var value = [UInt8](repeating: other, count: 16)
                #expect(!Self.isRejected(value))
                value[place] = 0x01
                #expect(Self.isRejected(value), "1 among \(other) at \(place)")
            }
        }
    }

    private static func isRejected(_ value: [UInt8]) -> Bool {
        value.withUnsafeBytes { HTTPSyntax.hasControlCharacter($0) }
    }
}
