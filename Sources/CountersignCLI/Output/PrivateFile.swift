internal import Foundation

/// A new file that only its owner may read.
struct PrivateFile {
    private let file: FileHandle

    /// Makes it; it must not exist. Throws `conflict` when it exists, `failed`.
    init(creating path: String) throws(CommandError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        guard descriptor >= 0 else {
            throw CommandError(
                errno == EEXIST ? .conflict : .failed,
                "cannot write \(path): \(String(cString: strerror(errno)))")
        }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Writes the text and closes the file.
    func write(_ text: String) throws {
        try file.write(contentsOf: Data(text.utf8))
        try file.close()
    }
}
