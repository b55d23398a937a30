/// An entry of a run, with fixed width and an order.
protocol IndexEntry: Comparable, Sendable {
    /// The size of an entry in the file, in bytes.
    static var width: Int { get }
    /// The event's sequence number, relative to the first of the run.
    var offset: UInt32 { get set }
    /// The hash that entries are ordered by first.
    var hash: UInt64 { get }

    init(from bytes: UnsafeRawBufferPointer)
    func store(in bytes: UnsafeMutableRawBufferPointer)
}

/// An entry for finding an event by its key.
struct KeyEntry: IndexEntry {
    static let width = 20

    let key: EventKey
    var offset: UInt32
    var hash: UInt64 { key.high }

    func store(in bytes: UnsafeMutableRawBufferPointer) {
        bytes.storeBytes(of: key.high.littleEndian, toByteOffset: 0, as: UInt64.self)
        bytes.storeBytes(of: key.low.littleEndian, toByteOffset: 8, as: UInt64.self)
        bytes.storeBytes(of: offset.littleEndian, toByteOffset: 16, as: UInt32.self)
    }

    static func < (one: KeyEntry, other: KeyEntry) -> Bool {
        one.key != other.key ? one.key < other.key : one.offset < other.offset
    }
}

extension KeyEntry {
    init(from bytes: UnsafeRawBufferPointer) {
        key = EventKey(high: bytes.word64(at: 0), low: bytes.word64(at: 8))
        offset = bytes.word32(at: 16)
    }
}

/// An entry for finding an event by app, user, device or message id.
struct SubjectEntry: IndexEntry {
    static let width = 12

    let hash: UInt64
    var offset: UInt32

    func store(in bytes: UnsafeMutableRawBufferPointer) {
        bytes.storeBytes(of: hash.littleEndian, toByteOffset: 0, as: UInt64.self)
        bytes.storeBytes(of: offset.littleEndian, toByteOffset: 8, as: UInt32.self)
    }

    static func < (one: SubjectEntry, other: SubjectEntry) -> Bool {
        one.hash != other.hash ? one.hash < other.hash : one.offset < other.offset
    }
}

extension SubjectEntry {
    init(from bytes: UnsafeRawBufferPointer) {
        hash = bytes.word64(at: 0)
        offset = bytes.word32(at: 8)
    }
}

extension Array where Element: IndexEntry {
    /// The entries in order. Distributes the entries by the first bits of their hashes, then sorts by insertion. Takes
    /// linear time if few different hashes share the first bits, and entries with the same hash are in order already.
    func sortedByHash() -> [Element] {
        var places = [Int](repeating: 0, count: 1 << 15 + 1)
        for entry in self { places[Int(entry.hash >> 49) + 1] += 1 }
        for part in 1..<places.count { places[part] += places[part - 1] }
        var sorted = self
        for entry in self {
            sorted[places[Int(entry.hash >> 49)]] = entry
            places[Int(entry.hash >> 49)] += 1
        }
        for var place in sorted.indices {
            while place > 0, sorted[place] < sorted[place - 1] {
                sorted.swapAt(place, place - 1)
                place -= 1
            }
        }
        return sorted
    }
}

extension UnsafeRawBufferPointer {
    func word64(at offset: Int) -> UInt64 {
        UInt64(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    func word32(at offset: Int) -> UInt32 {
        UInt32(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}
