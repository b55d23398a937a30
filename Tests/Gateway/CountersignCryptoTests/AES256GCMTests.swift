import Testing

@testable import CountersignCrypto

struct AES256GCMTests {
    private static func bytes(_ hexadecimal: String) -> [UInt8] {
        stride(from: 0, to: hexadecimal.utf8.count, by: 2).map { place in
            UInt8(hexadecimal.dropFirst(place).prefix(2), radix: 16) ?? 0
        }
    }

    /// Test case 16 of "The Galois/Counter Mode of Operation" (McGrew and Viega).
    @Test func opensThePublishedExample() {
        let sealed = Self.bytes(
            "cafebabefacedbaddecaf888"
                + "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
                + "76fc6ece0f4e1768cddf8853bb2d551b")
        let opened = AES256GCM.open(
            sealed, key: Self.bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"),
            context: Self.bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2"))
        let plain =
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
            + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
        #expect(opened == Self.bytes(plain))
    }

    @Test(arguments: [0, 1, 16, 5_000])
    func decryptionRejectsAnyChangeOfTheInput(_ count: Int) {
        let key = [UInt8](repeating: 7, count: AES256GCM.keyBytes)
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let sealed = AES256GCM.seal(bytes, key: key, context: [1, 2])
        #expect(AES256GCM.open(sealed, key: key, context: [1, 2]) == bytes)
        #expect(AES256GCM.seal(bytes, key: key, context: [1, 2]) != sealed)
        #expect(AES256GCM.open(sealed, key: key, context: [1, 3]) == nil)
        #expect(AES256GCM.open(sealed, key: [UInt8](repeating: 8, count: 32), context: [1, 2]) == nil)
        for place in [0, sealed.count / 2, sealed.count - 1] {
            var changed = sealed
            changed[place] ^= 1
            #expect(AES256GCM.open(changed, key: key, context: [1, 2]) == nil)
        }
        #expect(AES256GCM.open(Array(sealed.prefix(20)), key: key, context: [1, 2]) == nil)
        // OpenSSL reads 32 bytes whatever the key's length, so other lengths must be rejected.
        for other in [[], Array(key.dropLast()), key + [0]] {
            #expect(AES256GCM.open(sealed, key: other, context: [1, 2]) == nil)
        }
    }
}
