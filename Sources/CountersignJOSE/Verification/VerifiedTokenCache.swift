internal import CountersignCore
internal import Foundation

/// Remembers tokens whose signature was good, so that the same token need not be verified again.
///
/// Only what cannot change is remembered: that this very text was signed by that very key, and what it claims. Times,
/// revocation and users are judged again at each request. An entry belongs to the verifier that made it: another app's
/// verifier, or the same app's after a change of keys, policy or enforcement, never sees it, and when a verifier goes,
/// its entries go. One cache may serve all apps.
public final class VerifiedTokenCache: Sendable {
    /// What is remembered of one token.
    private final class Entry: Sendable {
        let owner: UInt64
        let token: [UInt8]
        let trusted: TrustedToken
        let cost: Int

        init(owner: UInt64, token: [UInt8], trusted: TrustedToken) {
            self.owner = owner
            self.token = token
            self.trusted = trusted
            // Claims are held as JSON and, mostly once more, as strings; the rest is objects and the table.
            cost = token.count + 2 * trusted.claims.json.count + 512
        }
    }

    /// Entries that were used since the last turn, and those that were not: when the young ones fill half the room, the
    /// old ones are dropped and the young become the old.
    private struct Generations {
        var young: [Int: Entry] = [:]
        var old: [Int: Entry] = [:]
        var youngBytes = 0
        var oldBytes = 0
    }

    /// The most memory that the entries take, in bytes; about 1.5 KB a token.
    public let maximumBytes: Int
    private let generations = Lock(Generations())

    /// An empty cache.
    ///
    /// - Parameter maximumBytes: The most memory that the entries take.
    public init(maximumBytes: Int = 16 << 20) {
        self.maximumBytes = maximumBytes
    }

    /// How many bytes the entries take now.
    public var byteCount: Int { generations.withLock { $0.youngBytes + $0.oldBytes } }

    /// How many tokens are remembered now.
    public var count: Int { generations.withLock { $0.young.count + $0.old.count } }

    /// Keyed with a secret of this process, so that nobody can make tokens that collide; and the text is compared too.
    static func hash(_ token: UnsafeBufferPointer<UInt8>, owner: UInt64) -> Int {
        var hasher = Hasher()
        hasher.combine(owner)
        hasher.combine(bytes: UnsafeRawBufferPointer(token))
        return hasher.finalize()
    }

    /// What is known of this very text, or nil.
    func find(
        _ token: UnsafeBufferPointer<UInt8>, hash: Int, owner: UInt64
    ) -> TrustedToken? {
        let entry = generations.withLock { generations -> Entry? in
            if let entry = generations.young[hash] { return entry }
            guard let entry = generations.old.removeValue(forKey: hash) else { return nil }
            generations.oldBytes -= entry.cost
            add(entry, hash, to: &generations)
            return entry
        }
        guard let entry, entry.owner == owner, entry.token.count == token.count,
            let base = token.baseAddress, memcmp(entry.token, base, token.count) == 0
        else { return nil }
        return entry.trusted
    }

    /// Remembers a token, in place of another with the same hash.
    func insert(
        _ token: UnsafeBufferPointer<UInt8>, hash: Int, owner: UInt64, _ trusted: TrustedToken
    ) {
        let entry = Entry(owner: owner, token: Array(token), trusted: trusted)
        guard entry.cost <= maximumBytes / 2 else { return }
        generations.withLock { generations in
            Self.remove(hash, from: &generations)
            add(entry, hash, to: &generations)
        }
    }

    /// Forgets a token.
    func remove(hash: Int) {
        generations.withLock { Self.remove(hash, from: &$0) }
    }

    /// Forgets every token of a verifier.
    func removeAll(of owner: UInt64) {
        generations.withLock { generations in
            generations.young = generations.young.filter { $0.value.owner != owner }
            generations.old = generations.old.filter { $0.value.owner != owner }
            generations.youngBytes = generations.young.values.reduce(0) { $0 + $1.cost }
            generations.oldBytes = generations.old.values.reduce(0) { $0 + $1.cost }
        }
    }

    private static func remove(_ hash: Int, from generations: inout Generations) {
        generations.youngBytes -= generations.young.removeValue(forKey: hash)?.cost ?? 0
        generations.oldBytes -= generations.old.removeValue(forKey: hash)?.cost ?? 0
    }

    private func add(_ entry: Entry, _ hash: Int, to generations: inout Generations) {
        if generations.youngBytes + entry.cost > maximumBytes / 2 {
            generations.old = generations.young
            generations.oldBytes = generations.youngBytes
            generations.young = [:]
            generations.youngBytes = 0
        }
        generations.young[hash] = entry
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
