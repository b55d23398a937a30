internal import CountersignSQLite
internal import Foundation

/// Which files an open database with a write-ahead log consists of.
///
/// Somebody may delete or replace them while they are open: by hand, with a backup, or with a program that sees no locks, as
/// on some network file systems and across virtual machines. What is written then goes to a file that has no name any more,
/// and SQLite does not notice.
struct DatabaseFiles {
    private enum Identity: Equatable {
        case file(device: dev_t, number: ino_t)
        case missing
        /// The system did not say, which is no reason to stop.
        case unknown
    }

    private let path: String
    private let database: Identity
    private let log: Identity

    /// The files of a database that is open and was read, so that it has a log.
    init(of path: String) {
        self.path = path
        database = Self.identity(of: path)
        log = Self.identity(of: path + "-wal")
    }

    /// Whether the same files still have their names.
    var areInPlace: Bool { databaseIsInPlace && isInPlace(path + "-wal", log) }

    /// Whether the same database still has its name. Its log comes and goes with the last connection.
    var databaseIsInPlace: Bool { isInPlace(path, database) }

    private func isInPlace(_ path: String, _ known: Identity) -> Bool {
        // One that had gone before anybody looked.
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
