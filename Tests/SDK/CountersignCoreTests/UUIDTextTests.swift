import CountersignCore
import Testing

struct UUIDTextTests {
    private func text(_ bytes: [UInt8]) -> String {
        var output: [UInt8] = []
        bytes.withUnsafeBytes { UUIDText.append($0, to: &output) }
        return String(decoding: output, as: UTF8.self)
    }

    @Test func aUUIDIsConvertedToBytesAndBack() throws {
        let bytes = UUIDText.bytes(of: "00112233-4455-6677-8899-aabbccddeeff")
        #expect(bytes == (0...15).map { $0 * 0x11 })
        for _ in 0..<100 {
            let id = UUIDv7.make()
            #expect(text(try #require(UUIDText.bytes(of: id))) == id)
        }
    }

    @Test(arguments: [
        "", "0", "00112233-4455-6677-8899-aabbccddeef", "00112233-4455-6677-8899-aabbccddeeff0",
        "00112233-4455-6677-8899-AABBCCDDEEFF", "001122334455-6677-8899-aabbccddeeff0",
        "00112233-4455-6677-8899aaabbccddeeff", "0011223--4455-6677-8899-aabbccddeeff",
        "00112233-4455-6677-8899-aabbccddeegf", "{0112233-4455-6677-8899-aabbccddeef}",
        "00112233-4455-6677-8899-aabbccddee\u{E9}",
    ])
    func invalidTextIsNotAUUID(text: String) {
        #expect(UUIDText.bytes(of: text) == nil)
    }
}
