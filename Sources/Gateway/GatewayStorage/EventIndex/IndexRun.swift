internal import CountersignCore

/// The range and level of a run.
struct IndexRunName: Hashable {
    static let suffix = ".run"
    /// The largest difference of sequence numbers in a run. One more must fit in 32 bits, for the end of a range.
    static let longest = Int64(UInt32.max) - 1

    /// The first and last sequence numbers of the run, which contains all events between them.
    let first: Int64
    let last: Int64
    /// 0 for a run written from events. A merged run has a level one higher than the runs it was merged from.
    let level: Int

    var file: String { "idx-\(first)-\(last)-\(level)\(Self.suffix)" }
}

extension IndexRunName {
    init?(file: String) {
        guard file.hasPrefix("idx-"), file.hasSuffix(Self.suffix) else { return nil }
        let parts = file.dropFirst(4).dropLast(Self.suffix.count).split(
            separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let first = Int64(parts[0]), let last = Int64(parts[1]),
            let level = Int(parts[2]),
            first > 0, first <= last, level >= 0, last - first <= Self.longest
        else { return nil }
        self.init(first: first, last: last, level: level)
    }
}

/// An immutable part of the index: the keys and subjects of a range of events.
///
/// The file has the keys, the subjects, the first entry of each block, the filter, and a trailer with the numbers of
/// entries. Every block and all data loaded into memory have checksums.
final class IndexRun: Sendable {
    static let magic: UInt64 = 0x3230_4E55_5253_4345
    static let trailerBytes = 76

    let name: IndexRunName
    let logID: [UInt8]
    let file: IndexFileReader
    let keys: IndexSection<KeyEntry>
    let subjects: IndexSection<SubjectEntry>
    /// Nil in a run opened without keys, which saves most of a run's memory.
    let filter: KeyFilter?

    /// Throws when the run is damaged or belongs to another log.
    init(
        _ name: IndexRunName, folder: String, logID: [UInt8], forKeys isForKeys: Bool = true
    ) throws(IndexFileError) {
        self.name = name
        self.logID = logID
        let file = try IndexFileReader(path: folder + "/" + name.file)
        let bytes = try file.read(at: file.size - Self.trailerBytes, count: Self.trailerBytes)
        let trailer = bytes.withUnsafeBytes { IndexRunTrailer($0) }
        guard let trailer, trailer.logID == logID, trailer.first == name.first, trailer.last == name.last
        else {
            throw file.damage("it belongs to another log or is incomplete")
        }
        guard let layout = IndexRunLayout(trailer), layout.end == file.size - Self.trailerBytes else {
            throw file.damage("its sections do not match its size")
        }
        let fences = try file.read(at: layout.fences, count: layout.filter - layout.fences)
        guard fences.withUnsafeBytes({ checksum($0) }) == trailer.fencesChecksum else {
            throw file.damage("its checksum is wrong")
        }
        if isForKeys {
            let bytes = try file.read(at: layout.filter, count: layout.end - layout.filter)
            let filter = bytes.withUnsafeBytes { bytes in
                checksum(bytes) == trailer.filterChecksum
                    ? KeyFilter(words: (0..<trailer.filterWords).map { bytes.word64(at: $0 * 8) }) : nil
            }
            guard let filter else { throw file.damage("the checksum of its filter is wrong") }
            self.filter = filter
        } else {
            filter = nil
        }
        self.file = file
        keys = IndexSection(
            file: file, start: 0, count: trailer.keys,
            fences: Self.entries(in: fences, from: 0, count: layout.keyBlocks))
        subjects = IndexSection(
            file: file, start: layout.subjects, count: trailer.subjects,
            fences: Self.entries(
                in: fences, from: layout.keyBlocks * KeyEntry.width, count: layout.subjectBlocks))
    }

    private static func entries<Entry: IndexEntry>(in bytes: [UInt8], from start: Int, count: Int) -> [Entry]
    {
        bytes.withUnsafeBytes { bytes in
            (0..<count).map {
                Entry(from: UnsafeRawBufferPointer(rebasing: bytes[(start + $0 * Entry.width)...]))
            }
        }
    }

    func mayContain(_ key: EventKey) -> Bool { filter?.mayContain(key) ?? true }

    /// The oldest first.
    func sequences(of key: EventKey) throws(IndexFileError) -> [Int64] {
        var found: [Int64] = []
        var block = keys.block(of: KeyEntry(key: key, offset: 0))
        while block < keys.blocks {
            for entry in try keys.read(block: block) where entry.key == key {
                found.append(name.first + Int64(entry.offset))
            }
            block += 1
            if block < keys.blocks, keys.fences[block].key > key { break }
        }
        return found
    }

    /// The oldest first.
    func sequences(of hash: UInt64, after sequence: Int64, limit: Int) throws(IndexFileError) -> [Int64] {
        guard sequence < name.last else { return [] }
        let from = SubjectEntry(hash: hash, offset: UInt32(max(0, max(sequence, 0) + 1 - name.first)))
        var found: [Int64] = []
        var block = subjects.block(of: from)
        while block < subjects.blocks {
            for entry in try subjects.read(block: block)
            where entry.hash == hash && entry.offset >= from.offset {
                found.append(name.first + Int64(entry.offset))
                if found.count == limit { return found }
            }
            block += 1
            if block < subjects.blocks, subjects.fences[block].hash > hash { break }
        }
        return found
    }

    /// The number of events after a sequence number. Reads at most two blocks.
    func count(of hash: UInt64, after sequence: Int64) throws(IndexFileError) -> Int {
        guard sequence < name.last else { return 0 }
        let from = SubjectEntry(hash: hash, offset: UInt32(max(0, max(sequence, 0) + 1 - name.first)))
        let first = try subjects.index(of: from)
        let end =
            try hash == .max ? subjects.count : subjects.index(of: SubjectEntry(hash: hash + 1, offset: 0))
        return end - first
    }

    /// The newest first.
    func sequences(of hash: UInt64, before sequence: Int64, limit: Int) throws(IndexFileError) -> [Int64] {
        guard sequence > name.first else { return [] }
        let end = SubjectEntry(hash: hash, offset: UInt32(min(sequence, name.last + 1) - name.first))
        var found: [Int64] = []
        var block = subjects.block(of: end)
        while block >= 0, block < subjects.blocks {
            for entry in try subjects.read(block: block).reversed()
            where entry.hash == hash && entry.offset < end.offset {
                found.append(name.first + Int64(entry.offset))
                if found.count == limit { return found }
            }
            if subjects.fences[block].hash < hash { break }
            block -= 1
        }
        return found
    }
}

struct IndexRunTrailer {
    var logID: [UInt8]
    var first: Int64
    var last: Int64
    var keys: Int
    var subjects: Int
    var filterWords: Int
    var fencesChecksum: UInt32
    var filterChecksum: UInt32
}

extension IndexRunTrailer {
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == IndexRun.trailerBytes, bytes.word64(at: 0) == IndexRun.magic,
            checksum(UnsafeRawBufferPointer(rebasing: bytes[..<72])) == bytes.word32(at: 72),
            let first = Int64(exactly: bytes.word64(at: 24)), let last = Int64(exactly: bytes.word64(at: 32)),
            let keys = Int(exactly: bytes.word64(at: 40)), let subjects = Int(exactly: bytes.word64(at: 48)),
            let filterWords = Int(exactly: bytes.word64(at: 56))
        else { return nil }
        self.init(
            logID: Array(bytes[8..<24]), first: first, last: last, keys: keys, subjects: subjects,
            filterWords: filterWords, fencesChecksum: bytes.word32(at: 64),
            filterChecksum: bytes.word32(at: 68))
    }

    var bytes: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: IndexRun.trailerBytes)
        bytes.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: IndexRun.magic.littleEndian, toByteOffset: 0, as: UInt64.self)
            for (index, byte) in logID.prefix(16).enumerated() { bytes[8 + index] = byte }
            for (index, number) in [first, last, Int64(keys), Int64(subjects), Int64(filterWords)]
                .enumerated()
            {
                bytes.storeBytes(of: number.littleEndian, toByteOffset: 24 + 8 * index, as: Int64.self)
            }
            bytes.storeBytes(of: fencesChecksum.littleEndian, toByteOffset: 64, as: UInt32.self)
            bytes.storeBytes(of: filterChecksum.littleEndian, toByteOffset: 68, as: UInt32.self)
            let sum = checksum(UnsafeRawBufferPointer(rebasing: bytes[..<72]))
            bytes.storeBytes(of: sum.littleEndian, toByteOffset: 72, as: UInt32.self)
        }
        return bytes
    }
}

struct IndexRunLayout {
    let keyBlocks: Int
    let subjects: Int
    let subjectBlocks: Int
    let fences: Int
    let filter: Int
    let end: Int

    /// Nil when a part is implausibly large.
    init?(_ trailer: IndexRunTrailer) {
        let most = 1 << 40
        guard 0...most ~= trailer.keys, 0...most ~= trailer.subjects, 0...most ~= trailer.filterWords else {
            return nil
        }
        let size = IndexSection<KeyEntry>.blockEntries
        keyBlocks = (trailer.keys + size - 1) / size
        subjectBlocks = (trailer.subjects + size - 1) / size
        subjects = IndexSection<KeyEntry>.bytes(of: trailer.keys)
        fences = subjects + IndexSection<SubjectEntry>.bytes(of: trailer.subjects)
        filter = fences + keyBlocks * KeyEntry.width + subjectBlocks * SubjectEntry.width
        end = filter + trailer.filterWords * 8
    }
}
