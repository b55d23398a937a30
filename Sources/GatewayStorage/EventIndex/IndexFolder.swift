internal import CountersignCore
internal import Foundation

/// The runs of an index on the disk.
enum IndexFolder {
    /// The folder beside the events' file.
    static func path(besides events: String) -> String {
        URL(fileURLWithPath: events).deletingLastPathComponent().appendingPathComponent("index").path
    }

    /// The names of the runs that count, the oldest first: of two that hold the same events, the merged one.
    static func names(in folder: String) -> [IndexRunName] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        var names: [IndexRunName] = []
        // The widest of those with the same beginning comes first, so whatever it holds comes after it.
        let sorted = files.compactMap { IndexRunName(file: $0) }.sorted {
            ($0.first, -$0.last, -$0.level) < ($1.first, -$1.last, -$1.level)
        }
        for name in sorted where names.last.map({ name.last > $0.last }) ?? true { names.append(name) }
        return names
    }

    /// Removes what is no run that counts: what was not finished, and what was merged.
    static func clean(_ folder: String, keeping names: [IndexRunName]) {
        let kept = BytewiseSet(names.map(\.file))
        for file in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        where !kept.contains(file) {
            guard file.hasSuffix(IndexFileWriter.unfinished) || IndexRunName(file: file) != nil else {
                continue
            }
            remove(file, from: folder)
        }
    }

    static func remove(_ file: String, from folder: String) {
        unlink(folder + "/" + file)
    }

    /// Makes the names in the folder durable.
    static func synchronize(_ folder: String) throws(IndexFileError) {
        let descriptor = open(folder, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        guard descriptor >= 0, fsync(descriptor) == 0 else {
            throw IndexFileError.ofSystem(folder)
        }
    }
}
