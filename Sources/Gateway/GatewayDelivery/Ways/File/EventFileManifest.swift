internal import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// The list of an app's event files, one JSON object per line, in the order of the events. Files that are not listed
/// may be incomplete. They are deleted, and their events are written again.
struct EventFileManifest {
    static let name = "manifest.ndjson"
    /// The suffix of event files.
    static let suffix = ".ndjson.zst"

    struct Entry: Equatable {
        let file: String
        /// The positions after the first and the last event.
        let first: String
        let last: String
        let events: Int
        let bytes: Int
        /// The digest of the compressed file, in hexadecimal.
        let sha256: String
        /// Whether retention deleted unwritten events before the first or between the first and the last event.
        let isAfterGap: Bool
    }

    let folder: String
    private(set) var last: Entry?

    private var path: String { folder + "/" + Self.name }

    /// Reads the manifest of an app's folder and deletes unlisted event files. Creates the folder if it does
    /// not exist. Throws `storage`.
    init(folder: String) throws(GatewayError) {
        self.folder = folder
        try GatewayError.storing {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        let text = FileManager.default.contents(atPath: path) ?? Data()
        // An incomplete last line is dropped, and its file counts as unlisted.
        let whole = text.lastIndex(of: 0x0A).map { text[...$0] } ?? Data()
        var listed: BytewiseSet = []
        for line in whole.split(separator: 0x0A) {
            guard let entry = Entry(line: Array(line)) else {
                throw GatewayError(
                    .storage, "\(path) has an invalid line; correct it, or move the folder away")
            }
            listed.insert(entry.file)
            last = entry
        }
        if whole.count < text.count {
            guard truncate(path, off_t(whole.count)) == 0 else { throw ZstdFile.failure(path, errno) }
        }
        let files = try GatewayError.storing { try FileManager.default.contentsOfDirectory(atPath: folder) }
        for file in files where Self.isEventFile(file) && !listed.contains(file) {
            unlink(folder + "/" + file)
        }
    }

    private static func isEventFile(_ name: String) -> Bool {
        name.hasSuffix(Self.suffix) || name.hasSuffix(Self.suffix + ZstdFile.unfinished)
    }

    /// Lists a durable file. After throwing `storage`, the file may or may not be listed, so the manifest
    /// must be read again.
    mutating func add(_ entry: Entry) throws(GatewayError) {
        let line = entry.json.bytes + [0x0A]
        let descriptor = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw ZstdFile.failure(path, errno) }
        defer { close(descriptor) }
        guard Foundation.write(descriptor, line, line.count) == line.count, fsync(descriptor) == 0 else {
            throw ZstdFile.failure(path, errno)
        }
        if last == nil {
            for place in [folder, folder + "/.."] {
                let problem = synchronizeFile(place)
                guard problem == 0 else { throw ZstdFile.failure(place, problem) }
            }
        }
        last = entry
    }
}

extension EventFileManifest.Entry {
    var json: JSONValue {
        [
            "file": .string(file), "first": .string(first), "last": .string(last),
            "events": .integer(Int64(events)), "bytes": .integer(Int64(bytes)), "sha256": .string(sha256),
            "events_missed": .bool(isAfterGap),
        ]
    }

    /// Nil when the line is not an entry.
    init?(line: [UInt8]) {
        let parser = StrictJSONParser(maximumBytes: 65_536)
        func member<Value: JSONConvertible>(_ name: String, _ members: JSONObject) -> Value? {
            members[name].flatMap { Value(jsonValue: $0) }
        }
        guard let members = try? parser.parse(bytes: line, { $0.value }).members,
            let file: String = member("file", members), let first: String = member("first", members),
            let last: String = member("last", members), let events: Int64 = member("events", members),
            let bytes: Int64 = member("bytes", members), let sha256: String = member("sha256", members),
            let isAfterGap: Bool = member("events_missed", members), !file.contains("/")
        else { return nil }
        self.init(
            file: file, first: first, last: last, events: Int(events), bytes: Int(bytes), sha256: sha256,
            isAfterGap: isAfterGap)
    }
}
