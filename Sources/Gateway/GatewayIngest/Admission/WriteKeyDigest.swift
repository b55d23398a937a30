internal import CountersignCrypto

/// The SHA-256 digest of a write key, as four words, which hash faster than an array.
struct WriteKeyDigest: Hashable {
    private let words: (UInt64, UInt64, UInt64, UInt64)

    init(of writeKey: String) {
        var writeKey = writeKey
        words = writeKey.withUTF8 { SHA256.words(UnsafeRawBufferPointer($0)) }
    }

    init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        words = bytes.withUnsafeBytes { $0.loadUnaligned(as: (UInt64, UInt64, UInt64, UInt64).self) }
    }

    var bytes: [UInt8] { withUnsafeBytes(of: words) { Array($0) } }

    static func == (one: Self, other: Self) -> Bool { one.words == other.words }

    func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
}
