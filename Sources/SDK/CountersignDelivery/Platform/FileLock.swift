package import Foundation

/// An advisory lock for reading, changing and replacing a file. The system releases the lock of a process that ends.
///
/// A suspended process keeps its lock. After `limit` another process removes the lock file and locks a new one. The
/// former holder detects that with `Held.check()` and starts again.
package enum FileLock {
    package struct Held {
        fileprivate let path: String
        /// Negative if locks are not available.
        fileprivate let descriptor: Int32

        /// Throws if another process has taken over the lock. Call it directly before each change.
        package func check() throws {
            guard descriptor < 0 || FileLock.isInPlace(descriptor, path) else { throw Lost() }
        }

        fileprivate func release() {
            guard descriptor >= 0 else { return }
            // A forked child shares the descriptor, so closing it here would not release the lock.
            flock(descriptor, LOCK_UN)
            close(descriptor)
        }
    }

    private struct Lost: Error {}

    /// Seconds to wait for another process.
    package static let limit: TimeInterval = 3
    private static let attempts = 3

    /// Runs `body` with the lock, which is a separate file at `path`, and again if the lock was lost. Also runs it if
    /// locks are not available, such as on a full disk, because usually only one process uses the file.
    package static func withLock<Result>(
        at path: String, limit: TimeInterval = limit, _ body: (Held) throws -> Result
    ) throws -> Result {
        try? makePrivateDirectory(URL(fileURLWithPath: path).deletingLastPathComponent().path)
        for _ in 0..<attempts {
            let held = acquire(path, limit: limit)
            defer { held.release() }
            do {
                return try body(held)
            } catch is Lost {
                continue
            }
        }
        throw POSIXError(.ETIMEDOUT)
    }

    private static func acquire(_ path: String, limit: TimeInterval) -> Held {
        while true {
            // Counts pauses and not time, because this process may be suspended too. Each lock file has its own limit.
            var waited: TimeInterval = 0
            var pause: TimeInterval = 0.001
            let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            let none = Held(path: path, descriptor: -1)
            guard file >= 0 else { return none }
            while isInPlace(file, path) {
                if flock(file, LOCK_EX | LOCK_NB) == 0 {
                    let held = Held(path: path, descriptor: file)
                    if (try? held.check()) != nil { return held }
                    break
                }
                if errno == EINTR { continue }
                guard errno == EWOULDBLOCK else {
                    close(file)
                    return none
                }
                guard waited < limit else {
                    unlink(path)
                    break
                }
                usleep(UInt32(pause * 1_000_000))
                waited += pause
                pause = min(pause * 2, 0.02)
            }
            Held(path: path, descriptor: file).release()
        }
    }

    /// Whether `path` still names the open file.
    static func isInPlace(_ descriptor: Int32, _ path: String) -> Bool {
        var named = stat()
        var opened = stat()
        guard stat(path, &named) == 0, fstat(descriptor, &opened) == 0 else { return false }
        return named.st_ino == opened.st_ino && named.st_dev == opened.st_dev
    }
}
