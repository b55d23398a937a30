internal import Foundation
internal import GatewayStorage

/// A new file with mode 0600. An error deletes the file, because an empty one would make the next attempt fail.
struct PrivateFile {
    /// Bytes that are written first, so that a full disk is found before a secret is made.
    private static let reservedBytes = 4_096

    private let path: String
    private let file: FileHandle

    /// Creates the file and reserves its space. Throws `conflict` if it exists, `failed` for other errors.
    init(creating path: String) throws(CommandError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        guard descriptor >= 0 else {
            throw CommandError(
                errno == EEXIST ? .conflict : .failed,
                "cannot write \(path): \(String(cString: strerror(errno)))")
        }
        self.path = path
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try fill(Data(count: Self.reservedBytes))
    }

    /// Throws `failed`.
    func write(_ text: String) throws(CommandError) { try fill(Data(text.utf8)) }

    /// Overwrites the reserved bytes, because truncating first would free their space.
    private func fill(_ data: Data) throws(CommandError) {
        do {
            try file.seek(toOffset: 0)
            try file.write(contentsOf: data)
            try file.truncate(atOffset: UInt64(data.count))
            try file.synchronize()
        } catch {
            unlink(path)
            throw CommandError(.failed, "cannot write \(path): \(FileProblem.text(error))")
        }
    }
}
