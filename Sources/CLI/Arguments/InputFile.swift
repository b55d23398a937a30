internal import Foundation

/// A file given by the user, which may be a pipe such as `/dev/stdin` or a shell's `<(…)`.
struct InputFile {
    let path: String

    /// Whether the path is a regular file's own name, and not a pipe or an inherited descriptor.
    var hasOwnName: Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
            && !["/dev/", "/proc/"].contains(where: path.hasPrefix)
    }

    /// Reads the file. Throws `notFound` if it cannot be read, and `usage` if it is larger than `longest`
    /// bytes, because a device may be endless.
    func bytes(longest: Int? = nil) throws(CommandError) -> [UInt8] {
        let data: Data
        do {
            // `Data(contentsOf:)` only reads regular files.
            let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            let read = if let longest { try file.read(upToCount: longest + 1) } else { try file.readToEnd() }
            data = read ?? Data()
        } catch {
            throw CommandError(.notFound, "cannot read \(path)")
        }
        if let longest, data.count > longest {
            throw CommandError(.usage, "\(path) is larger than \(Quantity.text(bytes: Int64(longest)))")
        }
        return [UInt8](data)
    }
}
