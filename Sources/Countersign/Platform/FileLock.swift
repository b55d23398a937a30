internal import Foundation

/// An advisory lock for the moment in which a file is read, changed and put back, so that no process undoes what another does
/// at the same time. The system releases that of a process that dies.
enum FileLock {
    /// Runs `body` with the lock, a file at `path` of its own that stays there. Its directory is made if it is missing.
    ///
    /// Where there can be none, such as on a full disk or a file system without locks, `body` runs all the same: one process
    /// is the rule.
    static func withLock<Result>(at path: String, _ body: () throws -> Result) rethrows -> Result {
        try? FileManager.default.createDirectory(
            atPath: URL(fileURLWithPath: path).deletingLastPathComponent().path,
            withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { return try body() }
        defer {
            // A child that the app is just making has the descriptor too, and would keep what closing alone lets go.
            flock(file, LOCK_UN)
            close(file)
        }
        while flock(file, LOCK_EX) != 0, errno == EINTR {}
        return try body()
    }
}
