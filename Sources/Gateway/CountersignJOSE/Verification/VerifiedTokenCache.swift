internal import CountersignCore
internal import CountersignCrypto

/// Caches tokens with valid signatures, so that they need not be verified again.
///
/// Only constant facts are cached: the key that signed the token, and the claims. Times, revocation and users
/// are checked for each request. An entry belongs to the verifier that created it and is removed with that
/// verifier. Verifiers of other apps, or of the same app after a change of keys, policy or enforcement, never
/// find the entry. One cache may serve all apps.
public final class VerifiedTokenCache: Sendable {
    struct Key: Hashable {
        let owner: UInt64
        /// SHA-256 of the token's text, so that constructing another token with the same key is infeasible.
        let digest: (UInt64, UInt64, UInt64, UInt64)

        static func == (one: Key, other: Key) -> Bool {
            one.owner == other.owner && one.digest == other.digest
        }

        func hash(into hasher: inout Hasher) { hasher.combine(digest.0) }
    }

    /// A cached token without its text. The text would take more memory, and would be a usable credential for
    /// an attacker who can read the memory.
    private final class Entry: Sendable {
        let key: Key
        let trusted: TrustedToken
        let cost: Int

        init(_ trusted: TrustedToken, for key: Key) {
            self.key = key
            self.trusted = trusted
            // An estimate: the claims as JSON and again as strings, and 512 bytes for objects and table entries.
            cost = 2 * trusted.claims.json.count + 512
        }
    }

    /// A ring of entries with CLOCK eviction: the hand evicts each entry that was not found since the hand last
    /// passed it. Tokens used only once therefore do not displace tokens in use.
    private struct ClockBuffer {
        struct Slot {
            var entry: Entry?
            var wasFound = false
        }

        private var slots: [Slot] = []
        private var free: [Int] = []
        private var index: [Key: Int] = [:]
        private var hand = 0
        private(set) var bytes = 0
        var hits = 0
        var misses = 0

        var count: Int { index.count }

        mutating func find(_ key: Key) -> Entry? {
            guard let slot = index[key] else { return nil }
            slots[slot].wasFound = true
            return slots[slot].entry
        }

        mutating func add(_ entry: Entry, room: Int) {
            if let slot = index[entry.key] { remove(slot) }
            while bytes + entry.cost > room { turn() }
            bytes += entry.cost
            if let slot = free.popLast() {
                slots[slot] = Slot(entry: entry)
                index[entry.key] = slot
            } else {
                slots.append(Slot(entry: entry))
                index[entry.key] = slots.count - 1
            }
        }

        mutating func removeAll(of owner: UInt64) {
            for slot in slots.indices where slots[slot].entry?.key.owner == owner { remove(slot) }
        }

        private mutating func turn() {
            if slots[hand].wasFound { slots[hand].wasFound = false } else { remove(hand) }
            hand = (hand + 1) % slots.count
        }

        private mutating func remove(_ slot: Int) {
            guard let entry = slots[slot].entry else { return }
            slots[slot] = Slot()
            free.append(slot)
            index[entry.key] = nil
            bytes -= entry.cost
        }
    }

    /// The maximum memory of the entries in bytes. A token takes 0.7 to 1 KB.
    public let maximumBytes: Int
    private let circle = Lock(ClockBuffer())

    /// Creates an empty cache.
    ///
    /// - Parameter maximumBytes: The maximum memory of the entries in bytes.
    public init(maximumBytes: Int = 96 << 20) {
        self.maximumBytes = maximumBytes
    }

    /// The memory of the entries in bytes.
    public var byteCount: Int { circle.withLock { $0.bytes } }

    /// The number of cached tokens.
    public var count: Int { circle.withLock { $0.count } }

    package var hits: Int { circle.withLock { $0.hits } }

    package var misses: Int { circle.withLock { $0.misses } }

    static func key(_ token: UnsafeBufferPointer<UInt8>, owner: UInt64) -> Key {
        Key(owner: owner, digest: SHA256.words(UnsafeRawBufferPointer(token)))
    }

    func find(_ key: Key) -> TrustedToken? {
        circle.withLock { circle -> Entry? in
            guard let entry = circle.find(key) else { return nil }
            circle.hits += 1
            return entry
        }?.trusted
    }

    func countMiss() {
        circle.withLock { $0.misses += 1 }
    }

    func insert(_ trusted: TrustedToken, for key: Key) {
        let entry = Entry(trusted, for: key)
        // A single entry must not displace most others.
        guard entry.cost <= maximumBytes / 2 else { return }
        circle.withLock { $0.add(entry, room: maximumBytes) }
    }

    func removeAll(of owner: UInt64) {
        circle.withLock { $0.removeAll(of: owner) }
    }
}

/// The owner of a verifier's cache entries. Removes the entries when it is deallocated with the verifier.
final class CacheOwner: Sendable {
    private static let last = Lock(UInt64(0))

    let cache: VerifiedTokenCache
    let id: UInt64

    init(_ cache: VerifiedTokenCache) {
        self.cache = cache
        id = Self.last.withLock { last in
            last += 1
            return last
        }
    }

    deinit {
        cache.removeAll(of: id)
    }
}
