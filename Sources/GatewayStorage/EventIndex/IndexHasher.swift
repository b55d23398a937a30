internal import CountersignJOSE

/// What makes an event unique: 128 bits of a keyed hash of its app, its sender and its message id.
struct EventKey: Hashable, Comparable {
    let high: UInt64
    let low: UInt64

    static func < (one: EventKey, other: EventKey) -> Bool {
        one.high != other.high ? one.high < other.high : one.low < other.low
    }
}

/// What events are looked for by.
enum EventSubject: Hashable {
    case user(String)
    /// Events of a device whose user was unknown.
    case device(String)
    case message(String)
}

/// Hashes ids for the index. Clients choose ids; without the secret they cannot choose where these end up.
struct IndexHasher {
    static let secretBytes = 32

    private let secret: [UInt8]

    init(secret: [UInt8]) {
        self.secret = secret
    }

    func key(appID: String, sender: String, messageID: String) -> EventKey {
        let digest = digest(of: 0, [appID, sender, messageID])
        return EventKey(high: Self.word(digest, at: 0), low: Self.word(digest, at: 8))
    }

    func hash(of subject: EventSubject, in appID: String) -> UInt64 {
        let (kind, id): (UInt8, String) =
            switch subject {
            case .user(let id): (1, id)
            case .device(let id): (2, id)
            case .message(let id): (3, id)
            }
        return Self.word(digest(of: kind, [appID, id]), at: 0)
    }

    /// Each part comes after its length, so that no two lists of parts give the same bytes.
    private func digest(of kind: UInt8, _ parts: [String]) -> [UInt8] {
        var bytes = secret
        bytes.reserveCapacity(256)
        bytes.append(kind)
        for part in parts {
            let utf8 = part.utf8
            withUnsafeBytes(of: UInt32(utf8.count).littleEndian) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: utf8)
        }
        return bytes.withUnsafeBytes { SHA256.digest($0) }
    }

    private static func word(_ digest: [UInt8], at offset: Int) -> UInt64 {
        digest.withUnsafeBytes {
            UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
    }
}
