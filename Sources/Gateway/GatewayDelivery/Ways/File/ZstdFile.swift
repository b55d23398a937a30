internal import CZstd
internal import CountersignCrypto
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel

/// Writes a Zstandard file (RFC 8878), which appears under its name only when it is complete and durable.
final class ZstdFile {
    private static let level: Int32 = 3

    private let path: String
    private let descriptor: Int32
    private let stream: OpaquePointer
    private let digest = SHA256.Running()
    private var buffer = [UInt8](repeating: 0, count: ZSTD_CStreamOutSize())
    private(set) var bytes = 0
    private var isNamed = false

    /// The suffix of an incomplete file.
    static let unfinished = ".tmp"

    /// Creates the temporary file for `path`. Throws `storage`.
    init(path: String) throws(GatewayError) {
        self.path = path
        let descriptor = open(path + Self.unfinished, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure(path, errno) }
        guard let stream = ZSTD_createCStream() else {
            close(descriptor)
            throw GatewayError(.storage, "there is not enough memory to compress \(path)")
        }
        self.descriptor = descriptor
        self.stream = stream
        ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, Self.level)
        ZSTD_CCtx_setParameter(stream, ZSTD_c_checksumFlag, 1)
    }

    deinit {
        ZSTD_freeCStream(stream)
        close(descriptor)
        // An incomplete file must not occupy the space that a retry may need.
        if !isNamed { unlink(path + Self.unfinished) }
    }

    func write(_ text: [UInt8]) throws(GatewayError) {
        try compress(text, ZSTD_e_continue)
    }

    /// Completes the file and renames it. Returns its SHA-256. Throws `storage` if the file is incomplete or
    /// not durable.
    func finish() throws(GatewayError) -> [UInt8] {
        try compress([], ZSTD_e_end)
        // Flushes before renaming, so that a power failure cannot leave an incomplete file under this name.
        guard fsync(descriptor) == 0 else { throw Self.failure(path, errno) }
        guard rename(path + Self.unfinished, path) == 0 else { throw Self.failure(path, errno) }
        isNamed = true
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let problem = synchronizeFile(folder)
        guard problem == 0 else { throw Self.failure(folder, problem) }
        return digest.finish()
    }

    private func compress(_ text: [UInt8], _ end: ZSTD_EndDirective) throws(GatewayError) {
        var position = 0
        var isDone = false
        while !isDone {
            var written = 0
            let left = text.withUnsafeBytes { text in
                buffer.withUnsafeMutableBytes { buffer in
                    var input = ZSTD_inBuffer(src: text.baseAddress, size: text.count, pos: position)
                    var output = ZSTD_outBuffer(dst: buffer.baseAddress, size: buffer.count, pos: 0)
                    let left = ZSTD_compressStream2(stream, &output, &input, end)
                    (position, written) = (input.pos, output.pos)
                    return left
                }
            }
            guard ZSTD_isError(left) == 0 else {
                throw GatewayError(.storage, "\(path): \(String(cString: ZSTD_getErrorName(left)))")
            }
            try append(written)
            isDone = end == ZSTD_e_end ? left == 0 : position == text.count
        }
    }

    private func append(_ count: Int) throws(GatewayError) {
        var done = 0
        while done < count {
            let result = buffer.withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress.map { $0 + done }, count - done)
            }
            if result < 0, errno == EINTR { continue }
            guard result > 0 else { throw Self.failure(path, errno) }
            done += result
        }
        buffer.withUnsafeBytes { digest.add(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        bytes += count
    }

    static func failure(_ path: String, _ number: Int32) -> GatewayError {
        GatewayError(.storage, "cannot write \(path): \(String(cString: strerror(number)))")
    }
}
