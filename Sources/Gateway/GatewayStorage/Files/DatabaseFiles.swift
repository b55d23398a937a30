internal import CountersignSQLite
internal import Foundation

/// The device and inode of an open database's files, to detect that the files were replaced, such as by a restore.
/// SQLite would continue to write to the unlinked files.
struct DatabaseFiles {
    private enum Identity: Equatable {
        case file(device: dev_t, number: ino_t)
        case missing
        /// The identity could not be read, which does not count as a change.
        case unknown
    }

    private let path: String
    private let database: Identity
    private let log: Identity

    /// The database must be open and have been read, so that its write-ahead log exists.
    init(of path: String) {
        self.path = path
        database = Self.identity(of: path)
        log = Self.identity(of: path + "-wal")
    }

    var areInPlace: Bool { databaseIsInPlace && isInPlace(path + "-wal", log) }

    /// Ignores the write-ahead log, because SQLite deletes it when the last connection closes.
    var databaseIsInPlace: Bool { isInPlace(path, database) }

    private func isInPlace(_ path: String, _ known: Identity) -> Bool {
        // A file that was missing when its identity was recorded counts as replaced.
        guard known != .missing else { return false }
        let found = Self.identity(of: path)
        return found == known || found == .unknown || known == .unknown
    }

    private static func identity(of path: String) -> Identity {
        var status = stat()
        guard stat(path, &status) != 0 else {
            return .file(device: status.st_dev, number: status.st_ino)
        }
        return errno == ENOENT ? .missing : .unknown
    }
}
