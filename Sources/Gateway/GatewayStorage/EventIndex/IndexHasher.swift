internal import CountersignCore
internal import CountersignCrypto
internal import GatewayModel

/// 128 bits of a keyed hash of an event's ``EventIdentity``.
struct EventKey: Hashable, Comparable {
    let high: UInt64
    let low: UInt64

    // The key is already a hash, so hash tables use its second half directly.
    func hash(into hasher: inout Hasher) { hasher.combine(low) }
    func _rawHashValue(seed: Int) -> Int { Int(truncatingIfNeeded: low) }

    static func < (one: EventKey, other: EventKey) -> Bool {
        one.high != other.high ? one.high < other.high : one.low < other.low
    }
}

/// The app, user, device or message id whose events the index finds.
enum EventSubject: Hashable {
    case app
    case user(String)
    /// Events of a device without a user.
    case device(String)
    case message(String)
}

/// Hashes ids for the index. The hash is keyed, so that clients cannot provoke collisions.
struct IndexHasher {
    static let secretBytes = 32

    private let secret: [UInt8]

    init(secret: [UInt8]) {
        self.secret = secret
    }

    func key(of event: EventIdentity) -> EventKey {
        let (prefix, sender) = event.sender.parts
        let (high, low) = digest(of: 0, event.appID, prefix, sender, event.messageID)
        return EventKey(high: high, low: low)
    }

    func hash(of subject: EventSubject, in appID: String) -> UInt64 {
        switch subject {
        case .app: digest(of: 4, appID, "", "").0
        case .user(let id): digest(of: 1, appID, "", id).0
        case .device(let id): digest(of: 2, appID, "", id).0
        case .message(let id): digest(of: 3, appID, "", id).0
        }
    }

    /// The first 128 bits of a keyed SHA-256 over the parts. Each part has its length as a prefix, so that different
    /// parts cannot produce the same bytes. `prefix` and `second` form one part.
    private func digest(
        of kind: UInt8, _ first: String, _ prefix: StaticString, _ second: String, _ third: String? = nil
    ) -> (UInt64, UInt64) {
        let count =
            secret.count + 1 + 12 + first.utf8.count + prefix.utf8CodeUnitCount + second.utf8.count
            + (third?.utf8.count ?? 0)
        return withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { bytes in
            secret.withUnsafeBytes { bytes.copyMemory(from: $0) }
            bytes[secret.count] = kind
            var end = Self.append(first, to: bytes, at: secret.count + 1)
            end = Self.append(second, to: bytes, at: end, after: prefix)
            if let third { end = Self.append(third, to: bytes, at: end) }
            let words = SHA256.words(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
            return (UInt64(littleEndian: words.0), UInt64(littleEndian: words.1))
        }
    }

    /// Appends a part after its length. Returns the offset of the next part.
    private static func append(
        _ part: String, to bytes: UnsafeMutableRawBufferPointer, at start: Int,
        after prefix: StaticString = ""
    ) -> Int {
        func append(_ text: UnsafeBufferPointer<UInt8>) -> Int {
            let count = prefix.utf8CodeUnitCount + text.count
            bytes.storeBytes(of: UInt32(count).littleEndian, toByteOffset: start, as: UInt32.self)
            let place = UnsafeMutableRawBufferPointer(rebasing: bytes[(start + 4)...])
            place.copyMemory(
                from: UnsafeRawBufferPointer(start: prefix.utf8Start, count: prefix.utf8CodeUnitCount))
            UnsafeMutableRawBufferPointer(rebasing: place[prefix.utf8CodeUnitCount...]).copyMemory(
                from: UnsafeRawBufferPointer(text))
            return start + 4 + count
        }
        if let end = part.utf8.withContiguousStorageIfAvailable(append) { return end }
        // The string has no contiguous UTF-8, such as one bridged from Objective-C.
        var copy = part
        return copy.withUTF8(append)
    }
}
