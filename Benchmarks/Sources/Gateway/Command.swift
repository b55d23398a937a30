import Foundation

enum Command {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Starts a program, only on `core` if given. Without a pipe its output is discarded.
    static func start(
        _ program: String, core: Int? = nil, _ arguments: [String], output: Pipe? = nil, folder: URL? = nil
    ) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = (core.map { ["taskset", "-c", String($0)] } ?? []) + [program] + arguments
        // Debian installs servers in /usr/sbin, which may be missing in PATH.
        var environment = ProcessInfo.processInfo.environment
        environment["PATH", default: "/usr/bin"] += ":/usr/sbin"
        process.environment = environment
        process.currentDirectoryURL = folder
        process.standardOutput = output ?? FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }

    /// The output of a program, trimmed.
    static func output(
        _ program: String, core: Int? = nil, _ arguments: [String], folder: URL? = nil
    ) throws -> String {
        let output = Pipe()
        let process = try start(program, core: core, arguments, output: output, folder: folder)
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(
                description: "\(program) \(arguments.first ?? "") ended with \(process.terminationStatus)")
        }
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
