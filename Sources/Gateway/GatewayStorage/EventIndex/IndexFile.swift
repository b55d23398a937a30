internal import CZlib
internal import Foundation

/// An error of an index file. The index can be rebuilt from the events.
struct IndexFileError: StorageError, CustomStringConvertible {
    let path: String
    let reason: String
    var isFull = false

    var description: String { "\(path): \(reason)" }

    static func ofSystem(_ path: String) -> IndexFileError {
        let code = errno
        return IndexFileError(
            path: path, reason: String(cString: strerror(code)), isFull: code == ENOSPC || code == EDQUOT)
    }
}

/// Writes a file sequentially. The file appears under its name only when complete.
final class IndexFileWriter {
    private static let bufferBytes = 1 << 18
    static let unfinished = ".tmp"

    private let path: String
    private let descriptor: Int32
    private var isFinished = false
    private var buffer: [UInt8] = []
    private(set) var position = 0

    init(path: String) throws(IndexFileError) {
        self.path = path
        descriptor = open(path + Self.unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw IndexFileError.ofSystem(path)
        }
        buffer.reserveCapacity(Self.bufferBytes)
    }

    deinit {
        close(descriptor)
        if !isFinished { unlink(path + Self.unfinished) }
    }

    /// Writes values in their memory representation; numbers must be little-endian.
    func write(_ values: ArraySlice<some BitwiseCopyable>) throws(IndexFileError) {
        values.withUnsafeBytes {
            buffer.append(contentsOf: $0)
            position += $0.count
        }
        if buffer.count >= Self.bufferBytes { try drain() }
    }

    /// Flushes and renames the file.
    func finish() throws(IndexFileError) {
        try drain()
        guard fsync(descriptor) == 0, rename(path + Self.unfinished, path) == 0 else { throw failure() }
        isFinished = true
    }

    private func drain() throws(IndexFileError) {
        var start = 0
        while start < buffer.count {
            let count = buffer[start...].withUnsafeBytes { bytes in
                #if canImport(Darwin)
                    Darwin.write(descriptor, bytes.baseAddress, bytes.count)
                #else
                    Glibc.write(descriptor, bytes.baseAddress, bytes.count)
                #endif
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure() }
            start += count
        }
        buffer.removeAll(keepingCapacity: true)
    }

    private func failure() -> IndexFileError { .ofSystem(path) }
}

/// Reads parts of a file, which stays readable after it was deleted.
final class IndexFileReader: Sendable {
    let path: String
    let size: Int
    private let descriptor: Int32

    init(path: String) throws(IndexFileError) {
        self.path = path
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw IndexFileError.ofSystem(path)
        }
        size = DiskSpace.size(of: path)
    }

    deinit {
        close(descriptor)
    }

    func read(at offset: Int, count: Int) throws(IndexFileError) -> [UInt8] {
        guard offset >= 0, count >= 0, offset + count <= size else { throw damage("it is too short") }
        var done = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, length in
            while done < count {
                let got = pread(
                    descriptor, buffer.baseAddress?.advanced(by: done), count - done, off_t(offset + done))
                if got < 0, errno == EINTR { continue }
                if got <= 0 { break }
                done += got
            }
            length = done
        }
        guard done == count else { throw damage("it cannot be read") }
        return bytes
    }

    func damage(_ reason: String) -> IndexFileError { IndexFileError(path: path, reason: reason) }
}

/// CRC-32, as in zlib.
func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    UInt32(truncatingIfNeeded: crc32_z(0, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count))
}
