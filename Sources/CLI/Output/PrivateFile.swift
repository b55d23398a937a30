internal import Foundation

/// A new file with mode 0600.
struct PrivateFile {
    private let file: FileHandle

    /// Creates the file. Throws `conflict` if it exists, `failed` for other errors.
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
