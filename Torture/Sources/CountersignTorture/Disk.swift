internal import Foundation

/// A small mounted file system, which a file can fill.
struct Disk {
    enum Kind: String, CaseIterable {
        case tmpfs, ext4
    }

    let directory: URL
    private let image: URL
    private var filler: URL { directory.appendingPathComponent("filler") }

    /// Returns nil if the process may not mount file systems.
    init?(_ kind: Kind, at directory: URL) throws {
        self.directory = directory
        image = directory.appendingPathExtension("image")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let mount: [String]
        switch kind {
        case .tmpfs: mount = ["-t", "tmpfs", "-o", "size=8m", "tmpfs"]
        case .ext4:
            _ = FileManager.default.createFile(atPath: image.path, contents: nil)
            // `-m 0`: without blocks reserved for root.
            guard try Self.run("truncate", "-s", "16M", image.path) == 0,
                try Self.run("mkfs.ext4", "-q", "-m", "0", image.path) == 0
            else { return nil }
            mount = ["-o", "loop", image.path]
        }
        guard try Self.run(["mount"] + mount + [directory.path]) == 0 else { return nil }
    }

    func remove() {
        _ = try? Self.run("umount", directory.path)
        try? FileManager.default.removeItem(at: image)
    }

    func fill() throws {
        let file = open(filler.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw TortureError("cannot fill \(directory.path)") }
        defer { close(file) }
        let block = [UInt8](repeating: 1, count: 4_096)
        // Repeats, because ext4 makes freed blocks available when it commits its journal.
        for _ in 0..<3 {
            while write(file, block, block.count) > 0 {}
            fsync(file)
        }
    }

    func free() throws { try FileManager.default.removeItem(at: filler) }

    private static func run(_ arguments: String...) throws -> Int32 { try run(arguments) }

    private static func run(_ arguments: [String]) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }
}
