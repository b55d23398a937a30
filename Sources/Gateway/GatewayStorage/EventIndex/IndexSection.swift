/// Sorted entries in blocks of a file. Each block has a checksum, and its first entry (`fences`) is in memory.
struct IndexSection<Entry: IndexEntry>: Sendable {
    static var blockEntries: Int { 256 }
    private static var blockBytes: Int { blockEntries * Entry.width + 4 }

    let file: IndexFileReader
    let start: Int
    let count: Int
    let fences: [Entry]

    var blocks: Int { fences.count }

    /// The size of `count` entries in the file, in bytes, including checksums.
    static func bytes(of count: Int) -> Int {
        count * Entry.width + (count + blockEntries - 1) / blockEntries * 4
    }

    func read(block: Int) throws(IndexFileError) -> [Entry] {
        let entries = min(Self.blockEntries, count - block * Self.blockEntries)
        let bytes = try file.read(at: start + block * Self.blockBytes, count: entries * Entry.width + 4)
        let found: [Entry]? = bytes.withUnsafeBytes { bytes in
            let data = UnsafeRawBufferPointer(rebasing: bytes[..<(entries * Entry.width)])
            guard checksum(data) == bytes.word32(at: data.count) else { return nil }
            return (0..<entries).map {
                Entry(from: UnsafeRawBufferPointer(rebasing: data[($0 * Entry.width)...]))
            }
        }
        guard let found else { throw file.damage("the checksum of a block is wrong") }
        return found
    }

    /// The number of entries before `entry`.
    func index(of entry: Entry) throws(IndexFileError) -> Int {
        guard blocks > 0 else { return 0 }
        let block = block(of: entry)
        let before = try read(block: block).prefix { $0 < entry }.count
        return block * Self.blockEntries + before
    }

    /// The block that contains the first entry not before `entry`, or the block before it.
    func block(of entry: Entry) -> Int {
        // Matching entries may start in the block before the first fence that is not before the entry.
        var (low, high) = (0, fences.count)
        while low < high {
            let middle = (low + high) / 2
            if fences[middle] < entry { low = middle + 1 } else { high = middle }
        }
        return max(0, low - 1)
    }
}

struct IndexSectionWriter<Entry: IndexEntry> {
    private(set) var count = 0
    private(set) var fences: [Entry] = []
    private var block = [UInt8](repeating: 0, count: IndexSection<Entry>.blockEntries * Entry.width + 4)
    private var filled = 0

    mutating func add(_ entry: Entry, to file: IndexFileWriter) throws(IndexFileError) {
        if filled == 0 { fences.append(entry) }
        block.withUnsafeMutableBytes { bytes in
            entry.store(in: UnsafeMutableRawBufferPointer(rebasing: bytes[filled...]))
        }
        filled += Entry.width
        count += 1
        if count.isMultiple(of: IndexSection<Entry>.blockEntries) { try end(file) }
    }

    mutating func end(_ file: IndexFileWriter) throws(IndexFileError) {
        guard filled > 0 else { return }
        block.withUnsafeMutableBytes { bytes in
            let sum = checksum(UnsafeRawBufferPointer(rebasing: bytes[..<filled]))
            bytes.storeBytes(of: sum.littleEndian, toByteOffset: filled, as: UInt32.self)
        }
        try file.write(block[..<(filled + 4)])
        filled = 0
    }
}

/// Reads the entries of a section in order.
struct IndexCursor<Entry: IndexEntry> {
    private let section: IndexSection<Entry>
    /// Added to the offset of each entry.
    private let shift: UInt32
    private var entries: [Entry] = []
    private var block = 0
    private var position = 0
    /// Nil at the end.
    private(set) var next: Entry?

    init(_ section: IndexSection<Entry>, shift: UInt32) throws(IndexFileError) {
        self.section = section
        self.shift = shift
        try advance()
    }

    mutating func advance() throws(IndexFileError) {
        if position == entries.count {
            guard block < section.blocks else {
                next = nil
                return
            }
            entries = try section.read(block: block)
            block += 1
            position = 0
        }
        var entry = entries[position]
        entry.offset += shift
        next = entry
        position += 1
    }
}
