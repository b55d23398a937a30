import Foundation

/// A pipe with a text and a closed writing end, like a shell's `<(…)`. It has no size and can be read once.
final class FilledPipe: Sendable {
    let path: String
    private let reading: Int32

    /// `text` must fit into the pipe's buffer.
    init(_ text: String) throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw POSIXError(.EMFILE) }
        reading = ends[0]
        path = "/dev/fd/\(reading)"
        let writer = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
        try writer.write(contentsOf: Data(text.utf8))
        try writer.close()
    }

    deinit {
        close(reading)
    }
}
