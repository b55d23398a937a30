internal import CountersignCore
package import Foundation

/// Creates a missing directory, and its missing parents, with mode 0700.
func makePrivateDirectory(_ path: String) throws {
    try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
}

/// A file descriptor. Closed when the last reference is released.
final class OpenFile: Sendable {
    let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }
}

extension stat {
    /// The time of the last write.
    package var modified: timespec {
        #if canImport(Darwin)
            st_mtimespec
        #else
            st_mtim
        #endif
    }
}

/// Replaces a file of mode 0600 atomically: writes a temporary file, makes it durable and renames it.
package enum DurableFile {
    /// Creates the directory if it is missing, and sets its mode to 0700. Calls `check` directly before it replaces the
    /// file. If `check` throws, the file has not changed.
    package static func write(_ data: Data, to path: String, check isAllowed: () throws -> Void = {}) throws {
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
        try makePrivateDirectory(directory.path)
        chmod(directory.path, 0o700)
        let temporary = temporaryPath(in: directory)
        do {
            let file = try check(open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600), path)
            defer { close(file) }
            try check(data.withUnsafeBytes { writeAll($0, to: file) } ? 0 : -1, path)
            try check(fsync(file), path)
            try isAllowed()
            try check(rename(temporary, path), path)
        } catch {
            unlink(temporary)
            throw error
        }
        let folder = try check(open(directory.path, O_RDONLY | O_CLOEXEC), path)
        defer { close(folder) }
        try check(fsync(folder), path)
    }

    /// Returns a new path at each call, so that two processes never write into one file. Deletes temporary files older
    /// than an hour. Their processes were killed, or were suspended and will fail to rename them.
    static func temporaryPath(in directory: URL) -> String {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
        let hourAgo = Date().timeIntervalSince1970 - 3_600
        for name in names where name.hasPrefix(".new-") {
            let path = directory.appendingPathComponent(name).path
            var status = stat()
            if stat(path, &status) == 0, TimeInterval(status.modified.tv_sec) < hourAgo { unlink(path) }
        }
        return directory.appendingPathComponent(".new-\(UUID().uuidString)").path
    }

    /// For removals that must succeed on a full disk. Without space for a new file, overwrites the old one in place.
    /// If the process ends during the overwrite, the file may be damaged.
    package static func writeOrOverwrite(
        _ data: Data, to path: String, check isAllowed: () throws -> Void = {}
    ) throws {
        do {
            try write(data, to: path, check: isAllowed)
        } catch let error as CocoaError where error.userInfo["errno"] is Int32 {
            let file = open(path, O_WRONLY | O_CLOEXEC)
            guard file >= 0 else { throw error }
            defer { close(file) }
            guard lseek(file, 0, SEEK_END) >= off_t(data.count) else { throw error }
            try isAllowed()
            let count = data.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
            guard count == data.count, ftruncate(file, off_t(count)) == 0, fsync(file) == 0 else {
                throw error
            }
        }
    }

    /// Returns false if not all bytes were written. `errno` then has the reason.
    static func writeAll(_ bytes: UnsafeRawBufferPointer, to file: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = write(file, rest)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
        return true
    }

    /// Calls the system's `write`, which a method here hides. Returns the bytes written, or -1.
    static func write(_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        #if canImport(Darwin)
            Darwin.write(file, bytes.baseAddress, bytes.count)
        #elseif canImport(Glibc)
            Glibc.write(file, bytes.baseAddress, bytes.count)
        #else
            Musl.write(file, bytes.baseAddress, bytes.count)
        #endif
    }

    @discardableResult
    private static func check<Number: SignedInteger>(_ result: Number, _ path: String) throws -> Number {
        guard result >= 0 else {
            throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path, "errno": errno])
        }
        return result
    }
}
