internal import CountersignCore
internal import Foundation

/// The run files of an index.
enum IndexFolder {
    static func path(besides events: String) -> String {
        URL(fileURLWithPath: events).deletingLastPathComponent().appendingPathComponent("index").path
    }

    /// The names of the current runs, the oldest first. Runs contained in a merged run are omitted.
    static func names(in folder: String) -> [IndexRunName] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        var names: [IndexRunName] = []
        // For runs with the same start, the longest comes first, so that contained runs follow it.
        let sorted = files.compactMap { IndexRunName(file: $0) }.sorted {
            ($0.first, -$0.last, -$0.level) < ($1.first, -$1.last, -$1.level)
        }
        for name in sorted where names.last.map({ name.last > $0.last }) ?? true { names.append(name) }
        return names
    }

    /// Deletes incomplete files and runs that are not in `names`.
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

    static func synchronize(_ folder: String) throws(IndexFileError) {
        let descriptor = open(folder, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        guard descriptor >= 0, fsync(descriptor) == 0 else {
            throw IndexFileError.ofSystem(folder)
        }
    }
}
