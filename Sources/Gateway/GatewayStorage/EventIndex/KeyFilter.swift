/// A blocked Bloom filter over a run's keys: 16 bits of memory and up to 7 set bits per key, 0.1 % false positives.
struct KeyFilter {
    private static let wordsPerBlock = 8
    private static let bitsPerKey = 7

    private(set) var words: [UInt64]
    private let blocks: UInt64

    init(capacity: Int) {
        let blocks = max(1, (capacity * 16 + 511) / 512)
        self.blocks = UInt64(blocks)
        words = Array(repeating: 0, count: blocks * Self.wordsPerBlock)
    }

    init?(words: [UInt64]) {
        guard !words.isEmpty, words.count.isMultiple(of: Self.wordsPerBlock) else { return nil }
        blocks = UInt64(words.count / Self.wordsPerBlock)
        self.words = words
    }

    mutating func insert(_ key: EventKey) {
        let start = start(of: key)
        var bits = key.high
        for _ in 0..<Self.bitsPerKey {
            words[start + Int(bits >> 6 & 7)] |= 1 << (bits & 63)
            bits >>= 9
        }
    }

    func mayContain(_ key: EventKey) -> Bool {
        let start = start(of: key)
        var bits = key.high
        for _ in 0..<Self.bitsPerKey {
            if words[start + Int(bits >> 6 & 7)] & 1 << (bits & 63) == 0 { return false }
            bits >>= 9
        }
        return true
    }

    private func start(of key: EventKey) -> Int {
        Int(key.low.multipliedFullWidth(by: blocks).high) * Self.wordsPerBlock
    }
}
