internal import CountersignSQLite
internal import Foundation

/// Which files an open database with a write-ahead log consists of.
///
/// Somebody may delete or replace them while they are open: by hand, with a backup, or with a program that sees no locks, as on some
/// network file systems and across virtual machines. What is written then goes to a file that nobody finds again, and SQLite
/// does not notice.
struct DatabaseFiles {
    private struct Identity: Equatable {
        let device: dev_t
        let number: ino_t
    }

    private let path: String
    private let database: Identity?
    private let log: Identity?

    /// The files of a database that is open and was read, so that it has a log.
    init(of path: String) {
        self.path = path
        database = Self.identity(of: path)
        log = Self.identity(of: path + "-wal")
    }

    /// Whether the same files still have their names.
    var areInPlace: Bool {
        database != nil && log != nil && Self.identity(of: path) == database
            && Self.identity(of: path + "-wal") == log
    }

    private static func identity(of path: String) -> Identity? {
        var status = stat()
        return stat(path, &status) == 0 ? Identity(device: status.st_dev, number: status.st_ino) : nil
    }
}
