package import CountersignCore
internal import CountersignCrypto
internal import CountersignJSON
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// A backup of a data directory: a folder with a copy of each SQLite file, and `manifest.json` with their digests and
/// row counts. A folder without a manifest is an unfinished backup.
///
/// A backup can be made while the gateway runs. Each file is a separate snapshot, in the order of ``databases``.
package struct Backup: Sendable, Equatable {
    package struct File: Sendable, Equatable {
        package var name: String
        package var bytes: Int
        /// In hexadecimal.
        package var sha256: String
        /// Rows by table.
        package var rows: BytewiseDictionary<Int>
    }

    package enum Step: Sendable, Equatable {
        /// Copying of a file begins; `bytes` is its size.
        case copying(String, bytes: Int)
        /// `bytes` of a file were read for verification.
        case checking(String, bytes: Int)
    }

    package var path: String
    package var createdMilliseconds: Int64
    package var program: String
    package var files: [File]

    package var name: String { URL(fileURLWithPath: path).lastPathComponent }
    package var bytes: Int { files.reduce(0) { $0 + $1.bytes } }
    package var events: Int { files.first { $0.name == "events.sqlite" }?.rows["event"] ?? 0 }

    static let manifestName = "manifest.json"
    static let prefix = "countersign-"
    private static let partialSuffix = ".partial"
    /// The files in the order of copying. An earlier version stored the progress of deliveries in separate files. These
    /// files are copied before the events, so that the progress is not ahead of the events.
    static let databases = [
        "control.sqlite", "token-keys.sqlite", "tokens.sqlite", DeliveryStore.fileName,
        EarlierStreams.fileName, "events.sqlite",
        "analytics.sqlite",
    ]

    /// Backs up a data directory, also while a gateway runs on it. Throws `notFound` without data, `invalid` for a
    /// damaged file, and `storage` also if less than `floorBytes` would stay free. Deletes an incomplete backup.
    package static func create(
        of dataDirectory: String, in folder: String, floorBytes: Int = 0, now: Date = Date(),
        report: (Step) -> Void = { _ in }
    ) throws(GatewayError) -> Backup {
        let present = databases.filter { FileManager.default.fileExists(atPath: dataDirectory + "/" + $0) }
        guard present.contains("control.sqlite") else {
            throw GatewayError(
                .notFound, "\(dataDirectory) is not a data directory: it has no control.sqlite")
        }
        let milliseconds = Milliseconds(now).count
        let stamp = RFC3339.text(milliseconds: milliseconds).unicodeScalars.filter {
            ("0"..."9").contains($0) || $0 == "T" || $0 == "Z"
        }
        let path = URL(fileURLWithPath: folder).appendingPathComponent(prefix + String(stamp))
            .standardizedFileURL
            .path
        let partial = path + partialSuffix
        removePartials(in: folder)
        do {
            try FileManager.default.createDirectory(
                atPath: partial, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let needed = present.reduce(0) { $0 + bytes(of: dataDirectory + "/" + $1) }
            try checkSpace(for: needed, in: folder, floorBytes)
            for name in present {
                let source = try SQLiteConnection(
                    path: dataDirectory + "/" + name, busyTimeoutMilliseconds: 30_000)
                let copy = partial + "/" + name
                report(.copying(name, bytes: bytes(of: dataDirectory + "/" + name)))
                _ = FileManager.default.createFile(
                    atPath: copy, contents: nil, attributes: [.posixPermissions: 0o600])
                try source.copy(to: copy) {
                    try checkSpace(in: folder, floorBytes)
                    try checkSpace(in: dataDirectory, floorBytes)
                    try checkLog(of: dataDirectory + "/" + name)
                }
                try synchronize(copy)
            }
            let backup = Backup(
                path: path, createdMilliseconds: milliseconds, program: countersignVersion,
                files: try present.map { try inspect(partial + "/" + $0, report) })
            try Data(JSONValue.object(backup.manifest).bytes).write(
                to: URL(fileURLWithPath: partial + "/" + manifestName), options: .atomic)
            try synchronize(partial + "/" + manifestName)
            try synchronize(partial)
            try FileManager.default.moveItem(atPath: partial, toPath: path)
            try synchronize(URL(fileURLWithPath: path).deletingLastPathComponent().path)
            return backup
        } catch {
            try? FileManager.default.removeItem(atPath: partial)
            if let error = error as? GatewayError { throw error }
            throw GatewayError(
                .storage, "the copy \(path) could not be made: \(error); is there enough space?")
        }
    }

    /// The size to which the write-ahead log of a small database may grow during the copy; see ``checkLog(of:)``.
    private static let logBytes = 256 << 20

    /// Throws `storage` if writing `bytes` more would leave less than `floorBytes` free.
    private static func checkSpace(
        for bytes: Int = 0, in folder: String, _ floorBytes: Int
    ) throws(GatewayError) {
        guard let free = DiskSpace.free(at: folder), free - floorBytes < bytes else { return }
        let floor = floorBytes > 0 ? ", of which \(floorBytes >> 20) MiB stay free" : ""
        throw GatewayError(
            .storage,
            bytes > 0
                ? "no copy is made: \(bytes >> 20) MiB are needed, and \(folder) has \(free >> 20) MiB\(floor)"
                : "the copy was stopped: \(folder) has \(free >> 20) MiB left\(floor)")
    }

    /// Throws `storage` if a write-ahead log has grown too much. SQLite cannot truncate the log before the copy ends.
    private static func checkLog(of database: String) throws(GatewayError) {
        let log = DiskSpace.size(of: database + "-wal")
        guard log > max(logBytes, DiskSpace.size(of: database) / 2) else { return }
        throw GatewayError(
            .storage,
            "\(database) is written faster than it is copied: its log has \(log >> 20) MiB; copy it to a faster disk, "
                + "or at a time with fewer events")
    }

    /// Deletes interrupted copies that have not been written to for an hour.
    private static func removePartials(in folder: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names where name.hasPrefix(prefix) && name.hasSuffix(partialSuffix) {
            let path = folder + "/" + name
            let files = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
            let written = ([path] + files.map { path + "/" + $0 }).compactMap {
                (try? FileManager.default.attributesOfItem(atPath: $0))?[.modificationDate] as? Date
            }
            guard written.allSatisfy({ $0.timeIntervalSinceNow < -3_600 }) else { continue }
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    /// The finished backups, newest first; empty when the folder does not exist.
    package static func all(in folder: String) -> [Backup] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasPrefix(prefix) && !$0.hasSuffix(partialSuffix) }.sorted().reversed()
            .compactMap { try? Backup(readingManifestOf: folder + "/" + $0) }
    }

    /// The finished backups, newest first, but backups dated in the future come last.
    static func all(in folder: String, at milliseconds: Int64) -> [Backup] {
        let backups = all(in: folder)
        return backups.filter { $0.createdMilliseconds <= milliseconds }
            + backups.filter { $0.createdMilliseconds > milliseconds }
    }

    /// Verifies digests and row counts, and runs SQLite's integrity check. Throws `notFound` without a finished backup,
    /// and `invalid` with the file's name for a damaged one.
    package static func verify(
        _ path: String, report: (Step) -> Void = { _ in }
    ) throws(GatewayError) -> Backup {
        let backup = try Backup(readingManifestOf: path)
        let listed = BytewiseSet(backup.files.map(\.name))
        let present = databases.filter { FileManager.default.fileExists(atPath: path + "/" + $0) }
        guard listed.contains("control.sqlite"), present.allSatisfy(listed.contains) else {
            throw GatewayError(
                .invalid, "\(manifestName) in \(path) does not list the files of a copy; use another copy")
        }
        for file in backup.files {
            let found: File
            do {
                found = try inspect(path + "/" + file.name, report)
            } catch {
                throw GatewayError(
                    .invalid, "\(file.name) in \(path) cannot be read: \(error); use another copy")
            }
            guard found == file else {
                throw GatewayError(
                    .invalid, "\(file.name) in \(path) was changed after it was written; use another copy")
            }
        }
        return backup
    }

    /// Verifies a backup and restores it into a new data directory, or one with an interrupted restore. Throws
    /// `conflict` when the folder contains anything else. After a `storage` error, the restored files are deleted.
    package static func restore(
        _ path: String, to dataDirectory: String, report: (Step) -> Void = { _ in }
    ) throws(GatewayError) -> Backup {
        let backup = try verify(path, report: report)
        let markerFile = dataDirectory + "/" + UnfinishedCopy.restoreFile
        let present = BytewiseSet((try? FileManager.default.contentsOfDirectory(atPath: dataDirectory)) ?? [])
        // A crash can also leave the other files of a database.
        let restored = databases.flatMap { name in ["", "-journal", "-wal", "-shm"].map { name + $0 } }
        let isCutShort =
            present.contains(UnfinishedCopy.restoreFile)
            && present.isSubset(of: BytewiseSet(restored + [UnfinishedCopy.restoreFile]))
        guard present.isEmpty || isCutShort else {
            throw GatewayError(
                .conflict, "\(dataDirectory) is not empty; give a folder that does not exist yet")
        }
        func clear() throws {
            for name in restored where FileManager.default.fileExists(atPath: dataDirectory + "/" + name) {
                try FileManager.default.removeItem(atPath: dataDirectory + "/" + name)
            }
        }
        do {
            try FileManager.default.createDirectory(
                atPath: dataDirectory, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            // After a crash, prevents a gateway from starting on an incomplete restore.
            try Data().write(to: URL(fileURLWithPath: markerFile))
            try synchronize(dataDirectory)
            try clear()
            for file in backup.files {
                let target = dataDirectory + "/" + file.name
                report(.copying(file.name, bytes: file.bytes))
                try FileManager.default.copyItem(atPath: path + "/" + file.name, toPath: target)
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: target)
                if file.name == "events.sqlite" { try EventLogState.renew(target) }
                try synchronize(target)
            }
            try synchronize(dataDirectory)
            try FileManager.default.removeItem(atPath: markerFile)
            try synchronize(dataDirectory)
        } catch {
            if (try? clear()) != nil { try? FileManager.default.removeItem(atPath: markerFile) }
            throw GatewayError(
                .storage, "\(dataDirectory) cannot be written: \(FileProblem.text(error))")
        }
        return backup
    }

    static func prune(
        _ folder: String, keeping count: Int, at milliseconds: Int64
    ) throws(GatewayError) {
        for backup in all(in: folder, at: milliseconds).dropFirst(count) {
            do {
                try FileManager.default.removeItem(atPath: backup.path)
            } catch {
                throw GatewayError(.storage, "the old copy \(backup.path) cannot be deleted: \(error)")
            }
        }
    }

    private init(path: String, createdMilliseconds: Int64, program: String, files: [File]) {
        self.path = path
        self.createdMilliseconds = createdMilliseconds
        self.program = program
        self.files = files
    }

    private init(readingManifestOf path: String) throws(GatewayError) {
        guard let text = FileManager.default.contents(atPath: path + "/" + Self.manifestName) else {
            throw GatewayError(.notFound, "\(path) is not a finished backup: it has no \(Self.manifestName)")
        }
        let backup = try? StrictJSONParser(maximumBytes: 1 << 20).parse(bytes: [UInt8](text)) {
            Backup(path: path, manifest: $0.value)
        }
        guard let backup = backup ?? nil else {
            throw GatewayError(.invalid, "the manifest of \(path) cannot be read; use another copy")
        }
        self = backup
    }

    private init?(path: String, manifest: JSONValue) {
        guard case .object(let members) = manifest, case .integer(let created)? = members["created_ms"],
            case .string(let program)? = members["program"], case .array(let files)? = members["files"]
        else { return nil }
        self.path = path
        createdMilliseconds = created
        self.program = program
        self.files = []
        for file in files {
            guard case .object(let file) = file, case .string(let name)? = file["name"],
                Self.databases.contains(name), !self.files.contains(where: { $0.name == name }),
                case .integer(let bytes)? = file["bytes"],
                // The limit exceeds SQLite's maximum file size. The sum for all ``databases`` cannot overflow.
                (0..<1 << 50).contains(bytes),
                case .string(let sha256)? = file["sha256"], case .object(let rows)? = file["rows"]
            else { return nil }
            self.files.append(
                File(
                    name: name, bytes: Int(bytes), sha256: sha256,
                    rows: rows.compactMapValues {
                        if case .integer(let count) = $0 { Int(count) } else { nil }
                    }
                ))
        }
    }

    package var manifest: JSONObject {
        [
            "created_ms": .integer(createdMilliseconds), "program": .string(program),
            "files": .array(
                files.map { file in
                    [
                        "name": .string(file.name), "bytes": .integer(Int64(file.bytes)),
                        "sha256": .string(file.sha256),
                        "rows": .object(file.rows.mapValues { .integer(Int64($0)) }),
                    ]
                }),
        ]
    }

    private static func inspect(_ path: String, _ report: (Step) -> Void) throws -> File {
        let name = URL(fileURLWithPath: path).lastPathComponent
        let digest = SHA256.Running()
        var size = 0
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        while let piece = try handle.read(upToCount: 1 << 20), !piece.isEmpty {
            piece.withUnsafeBytes { digest.add($0) }
            size += piece.count
            report(.checking(name, bytes: size))
        }
        let database = try SQLiteConnection(path: path, mode: .readOnly)
        let verdict = try database.first("PRAGMA integrity_check(1)") { $0.text(0) }
        guard verdict == "ok" else {
            throw GatewayError(.invalid, "SQLite reports that \(name) is damaged: \(verdict ?? "no result")")
        }
        var rows: BytewiseDictionary<Int> = [:]
        for table in try database.all(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            row: { row throws(SQLiteError) in row.text(0) })
        {
            rows[table] = try database.first("SELECT count(*) FROM \"\(table)\"") { $0.int(0) }
        }
        return File(
            name: name, bytes: size,
            sha256: Array(digest.finish()).hexadecimal, rows: rows)
    }

    private static func bytes(of path: String) -> Int {
        (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? Int ?? 0
    }

    private static func synchronize(_ path: String) throws(GatewayError) {
        let failure = synchronizeFile(path)
        guard failure == 0 else {
            throw GatewayError(.storage, "cannot write \(path): \(String(cString: strerror(failure)))")
        }
    }
}
