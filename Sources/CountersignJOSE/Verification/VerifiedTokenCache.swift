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
        let key: Key
        let trusted: TrustedToken
        let cost: Int

        init(_ trusted: TrustedToken, for key: Key) {
            self.key = key
            self.trusted = trusted
            // Claims are held as JSON and, mostly once more, as strings; the rest is objects and the table.
            cost = 2 * trusted.claims.json.count + 512
        }
    }

    /// Entries in a circle. Room is made by a hand that goes around: an entry that was found since the hand last passed
    /// stays, any other goes. So tokens that come once do not displace those in use, and as many are remembered as there is room for.
    private struct Circle {
        struct Place {
            var entry: Entry?
            var wasFound = false
        }

        private var places: [Place] = []
        private var free: [Int] = []
        private var index: [Key: Int] = [:]
        private var hand = 0
        private(set) var bytes = 0
        var hits = 0
        var misses = 0

        var count: Int { index.count }

        mutating func find(_ key: Key) -> Entry? {
            guard let place = index[key] else { return nil }
            places[place].wasFound = true
            return places[place].entry
        }

        mutating func add(_ entry: Entry, room: Int) {
            if let place = index[entry.key] { remove(place) }
            while bytes + entry.cost > room { turn() }
            bytes += entry.cost
            if let place = free.popLast() {
                places[place] = Place(entry: entry)
                index[entry.key] = place
            } else {
                places.append(Place(entry: entry))
                index[entry.key] = places.count - 1
            }
        }

        mutating func removeAll(of owner: UInt64) {
            for place in places.indices where places[place].entry?.key.owner == owner { remove(place) }
        }

        private mutating func turn() {
            if places[hand].wasFound { places[hand].wasFound = false } else { remove(hand) }
            hand = (hand + 1) % places.count
        }

        private mutating func remove(_ place: Int) {
            guard let entry = places[place].entry else { return }
            places[place] = Place()
            free.append(place)
            index[entry.key] = nil
            bytes -= entry.cost
        }
    }

    /// The most memory that the entries take, in bytes; 0.7 to 1 KB a token.
    public let maximumBytes: Int
    private let circle = Lock(Circle())

    /// An empty cache.
    ///
    /// - Parameter maximumBytes: The most memory that the entries take.
    public init(maximumBytes: Int = 96 << 20) {
        self.maximumBytes = maximumBytes
    }

    /// How many bytes the entries take now.
    public var byteCount: Int { circle.withLock { $0.bytes } }

    /// How many tokens are remembered now.
    public var count: Int { circle.withLock { $0.count } }

    /// How often a token was found.
    package var hits: Int { circle.withLock { $0.hits } }

    /// How often a token had to be read, and verified as far as it is one.
    package var misses: Int { circle.withLock { $0.misses } }

    static func key(_ token: UnsafeBufferPointer<UInt8>, owner: UInt64) -> Key {
        Key(owner: owner, digest: SHA256.words(UnsafeRawBufferPointer(token)))
    }

    /// What is known of this very text, or nil.
    func find(_ key: Key) -> TrustedToken? {
        circle.withLock { circle -> Entry? in
            guard let entry = circle.find(key) else { return nil }
            circle.hits += 1
            return entry
        }?.trusted
    }

    /// A token that was not found is about to be read.
    func countMiss() {
        circle.withLock { $0.misses += 1 }
    }

    /// Remembers a token.
    func insert(_ trusted: TrustedToken, for key: Key) {
        let entry = Entry(trusted, for: key)
        // One alone must not displace all others.
        guard entry.cost <= maximumBytes / 2 else { return }
        circle.withLock { $0.add(entry, room: maximumBytes) }
    }

    /// Forgets every token of a verifier.
    func removeAll(of owner: UInt64) {
        circle.withLock { $0.removeAll(of: owner) }
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
