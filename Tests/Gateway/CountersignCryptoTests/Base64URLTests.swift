import Testing

@testable import CountersignCrypto

struct Base64URLTests {
    @Test func bytesOfEveryLengthRoundTrip() {
        for length in 0..<70 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 37 + length) }
            let text = Base64URL.encode(bytes)
            #expect(Base64URL.decode(text) == bytes)
            #expect(Base64URL.decodedCount(text.utf8.count) == length)
        }
        #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
    }

    @Test func bytesOutsideTheAlphabetAreRejectedAtEveryPosition() {
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for place in 0..<4 {
            for byte in UInt8.min...UInt8.max {
                var text = Array("AAAA".utf8)
                text[place] = byte
                let decoded = text.withUnsafeBufferPointer { Base64URL.decode($0) }
                #expect((decoded != nil) == alphabet.contains(byte))
            }
        }
    }

    @Test(arguments: ["A", "AAAAA", "AB", "AAB", "AA==", "AAA=", "AAAAAB", "=", " ", "AA\n"])
    func paddingWhitespaceBadLengthsAndUnusedBitsAreRejected(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }
}
