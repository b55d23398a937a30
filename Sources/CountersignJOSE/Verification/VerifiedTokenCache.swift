internal import CountersignCore

/// Remembers tokens whose signature was good, so that the same token need not be verified again.
///
/// Only what cannot change is remembered: that this very text was signed by that very key, and what it claims. Times,
/// revocation and users are judged again at each request. An entry belongs to the verifier that made it: another app's
/// verifier, or the same app's after a change of keys, policy or enforcement, never sees it, and when a verifier goes,
/// its entries go. One cache may serve all apps.
public final class VerifiedTokenCache: Sendable {
    /// Which token, and whose.
    struct Key: Hashable {
        let owner: UInt64
        /// SHA-256 of the token's text, so that nobody can make another one with the same key.
        let digest: (UInt64, UInt64, UInt64, UInt64)

        static func == (one: Key, other: Key) -> Bool {
            one.owner == other.owner && one.digest == other.digest
        }

        func hash(into hasher: inout Hasher) { hasher.combine(digest.0) }
    }

    /// What is remembered of one token. Not its text: that is most of its bytes, and whoever reads this memory could use it.
    private final class Entry: Sendable {
        let trusted: TrustedToken
        let cost: Int

        init(_ trusted: TrustedToken) {
            self.trusted = trusted
            // Claims are held as JSON and, mostly once more, as strings; the rest is objects and the table.
            cost = 2 * trusted.claims.json.count + 512
        }
    }

    /// Entries that were used since the last turn, and those that were not: when the young ones fill half the room, the
    /// old ones are dropped and the young become the old.
    private struct Generations {
        var young: [Key: Entry] = [:]
        var old: [Key: Entry] = [:]
        var youngBytes = 0
        var oldBytes = 0
        var hits = 0
        var misses = 0
    }

    /// The most memory that the entries take, in bytes; 0.7 to 1 KB a token.
    public let maximumBytes: Int
    private let generations = Lock(Generations())

    /// An empty cache.
    ///
    /// - Parameter maximumBytes: The most memory that the entries take.
    public init(maximumBytes: Int = 96 << 20) {
        self.maximumBytes = maximumBytes
    }

    /// How many bytes the entries take now.
    public var byteCount: Int { generations.withLock { $0.youngBytes + $0.oldBytes } }

    /// How many tokens are remembered now.
    public var count: Int { generations.withLock { $0.young.count + $0.old.count } }

    /// How often a token was found.
    package var hits: Int { generations.withLock { $0.hits } }

    /// How often a token had to be read, and verified as far as it is one.
    package var misses: Int { generations.withLock { $0.misses } }

    static func key(_ token: UnsafeBufferPointer<UInt8>, owner: UInt64) -> Key {
        Key(owner: owner, digest: SHA256.words(UnsafeRawBufferPointer(token)))
    }

    /// What is known of this very text, or nil.
    func find(_ key: Key) -> TrustedToken? {
        generations.withLock { generations -> Entry? in
            if let entry = generations.young[key] {
                generations.hits += 1
                return entry
            }
            guard let entry = generations.old.removeValue(forKey: key) else { return nil }
            generations.hits += 1
            generations.oldBytes -= entry.cost
            add(entry, key, to: &generations)
            return entry
        }?.trusted
    }

    /// A token that was not found is about to be read.
    func countMiss() {
        generations.withLock { $0.misses += 1 }
    }

    /// Remembers a token.
    func insert(_ trusted: TrustedToken, for key: Key) {
        let entry = Entry(trusted)
        guard entry.cost <= maximumBytes / 2 else { return }
        generations.withLock { generations in
            Self.remove(key, from: &generations)
            add(entry, key, to: &generations)
        }
    }

    /// Forgets every token of a verifier.
    func removeAll(of owner: UInt64) {
        generations.withLock { generations in
            generations.young = generations.young.filter { $0.key.owner != owner }
            generations.old = generations.old.filter { $0.key.owner != owner }
            generations.youngBytes = generations.young.values.reduce(0) { $0 + $1.cost }
            generations.oldBytes = generations.old.values.reduce(0) { $0 + $1.cost }
        }
    }

    private static func remove(_ key: Key, from generations: inout Generations) {
        generations.youngBytes -= generations.young.removeValue(forKey: key)?.cost ?? 0
        generations.oldBytes -= generations.old.removeValue(forKey: key)?.cost ?? 0
    }

    private func add(_ entry: Entry, _ key: Key, to generations: inout Generations) {
        if generations.youngBytes + entry.cost > maximumBytes / 2 {
            generations.old = generations.young
            generations.oldBytes = generations.youngBytes
            generations.young = [:]
            generations.youngBytes = 0
        }
        generations.young[key] = entry
        generations.youngBytes += entry.cost
    }
}

/// A verifier's place in a cache. When the verifier goes, what it remembered goes.
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
