internal import CountersignCore
internal import Foundation

extension WriteAheadLog {
    static let prefix = "incoming-"
    static let suffix = ".log"

    /// The files of one log, which this or another process writes.
    struct Found {
        /// The id of the `LeaseOwner` that writes the log.
        let id: String
        let processID: Int32
        var paths: [String] = []
        /// The time of the last write to a file of the log, in seconds since 1970.
        var modified: TimeInterval = 0

        struct Contents {
            var events: [RenderedEvent] = []
            var unreadable = 0
            var damagedPaths: [String] = []
        }

        /// Throws if a file cannot be read now.
        func events(after sequence: Int64) throws -> Contents {
            var contents = Contents()
            var events: [Int64: RenderedEvent] = [:]
            var damagedEnds: [Int64] = []
            for path in paths {
                let file = try Frame.read(contentsOf: path)
                if file.isDamaged { contents.damagedPaths.append(path) }
                if let number = file.damagedEnd { damagedEnds.append(number) }
                for event in file.events where event.sequence > sequence { events[event.sequence] = event }
            }
            contents.events = events.values.sorted { $0.sequence < $1.sequence }
            // Missing numbers are unreadable events, or events that `Recorder.replaceLog` has dropped.
            if !contents.damagedPaths.isEmpty, let last = contents.events.last?.sequence {
                let (count, overflows) = last.subtractingReportingOverflow(sequence)
                if !overflows { contents.unreadable = Int(count) - contents.events.count }
            }
            // A damaged end of a file after the last readable event counts as one event.
            let last = max(sequence, contents.events.last?.sequence ?? sequence)
            if damagedEnds.contains(where: { $0 > last }) { contents.unreadable += 1 }
            return contents
        }
    }

    /// Throws if the directory cannot be read now.
    static func all(in directory: URL) throws -> [Found] {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        var found: [String: Found] = [:]
        for name in names where name.hasPrefix(prefix) && name.hasSuffix(suffix) {
            // prefix, UUID, process id, number, suffix
            let parts = name.dropFirst(prefix.count).dropLast(suffix.count).split(separator: "-")
            guard parts.count > 2, let process = Int32(parts[parts.count - 2]) else { continue }
            let id = parts.dropLast(2).joined(separator: "-")
            let path = directory.appendingPathComponent(name).path
            var status = stat()
            guard stat(path, &status) == 0 else { continue }
            var log = found[id] ?? Found(id: id, processID: process)
            log.paths.append(path)
            log.modified = max(log.modified, TimeInterval(status.modified.tv_sec))
            found[id] = log
        }
        return Array(found.values)
    }
}
