internal import Foundation

/// A file that somebody has named, which may also be a pipe such as `/dev/stdin` or a shell's `<(…)`.
struct InputFile {
    let path: String

    /// True for a file whose name tells it from others: neither a pipe nor what the process has inherited.
    var hasOwnName: Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
            && !["/dev/", "/proc/"].contains(where: path.hasPrefix)
    }

    /// What it holds. Throws `notFound` when it cannot be read, and `usage` when it is larger than `longest` bytes: a device
    /// may have no end.
    func bytes(longest: Int? = nil) throws(CommandError) -> [UInt8] {
        let data: Data
        do {
            // `Data(contentsOf:)` refuses what is no regular file.
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
