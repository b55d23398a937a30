/// Writes runs. A run appears under its name only when it is durable.
struct IndexRunWriter {
    let folder: String
    let logID: [UInt8]

    /// Keys and subjects must be sorted.
    func write(
        _ name: IndexRunName, keys: [KeyEntry], subjects: [SubjectEntry]
    ) throws(IndexFileError) -> IndexRun {
        try write(name, capacity: keys.count) { file, add throws(IndexFileError) in
            for key in keys { try add(key) }
        } subjects: { add throws(IndexFileError) in
            for subject in subjects { try add(subject) }
        }
    }

    /// The runs must be adjacent.
    func merge(_ runs: [IndexRun]) throws(IndexFileError) -> IndexRun {
        let first = runs[0].name.first
        let name = IndexRunName(
            first: first, last: runs[runs.count - 1].name.last, level: runs[0].name.level + 1)
        return try write(name, capacity: runs.reduce(0) { $0 + $1.keys.count }) {
            _, add throws(IndexFileError) in
            try Self.merge(runs.map { ($0.keys, $0.name.first) }, first, add)
        } subjects: { add throws(IndexFileError) in
            try Self.merge(runs.map { ($0.subjects, $0.name.first) }, first, add)
        }
    }

    private static func merge<Entry: IndexEntry>(
        _ sources: [(section: IndexSection<Entry>, first: Int64)], _ first: Int64,
        _ add: (Entry) throws(IndexFileError) -> Void
    ) throws(IndexFileError) {
        var cursors: [IndexCursor<Entry>] = []
        for source in sources {
            cursors.append(try IndexCursor(source.section, shift: UInt32(source.first - first)))
        }
        while true {
            var least: (index: Int, entry: Entry)?
            for index in cursors.indices {
                guard let entry = cursors[index].next else { continue }
                if let found = least, !(entry < found.entry) { continue }
                least = (index, entry)
            }
            guard let least else { return }
            try add(least.entry)
            try cursors[least.index].advance()
        }
    }

    private func write(
        _ name: IndexRunName, capacity: Int,
        keys: (IndexFileWriter, (KeyEntry) throws(IndexFileError) -> Void) throws(IndexFileError) -> Void,
        subjects: ((SubjectEntry) throws(IndexFileError) -> Void) throws(IndexFileError) -> Void
    ) throws(IndexFileError) -> IndexRun {
        let file = try IndexFileWriter(path: folder + "/" + name.file)
        var filter = KeyFilter(capacity: capacity)
        var keySection = IndexSectionWriter<KeyEntry>()
        try keys(file) { entry throws(IndexFileError) in
            filter.insert(entry.key)
            try keySection.add(entry, to: file)
        }
        try keySection.end(file)
        var subjectSection = IndexSectionWriter<SubjectEntry>()
        try subjects { entry throws(IndexFileError) in try subjectSection.add(entry, to: file) }
        try subjectSection.end(file)
        var fences: [UInt8] = []
        Self.append(keySection.fences, to: &fences)
        Self.append(subjectSection.fences, to: &fences)
        let words = filter.words.map(\.littleEndian)
        let trailer = IndexRunTrailer(
            logID: logID, first: name.first, last: name.last, keys: keySection.count,
            subjects: subjectSection.count,
            filterWords: words.count, fencesChecksum: fences.withUnsafeBytes { checksum($0) },
            filterChecksum: words.withUnsafeBytes { checksum($0) })
        try file.write(fences[...])
        try file.write(words[...])
        try file.write(trailer.bytes[...])
        try file.finish()
        try IndexFolder.synchronize(folder)
        return try IndexRun(name, folder: folder, logID: logID)
    }

    private static func append<Entry: IndexEntry>(_ entries: [Entry], to bytes: inout [UInt8]) {
        for entry in entries {
            withUnsafeTemporaryAllocation(byteCount: Entry.width, alignment: 8) { buffer in
                entry.store(in: buffer)
                bytes.append(contentsOf: buffer)
            }
        }
    }
}
