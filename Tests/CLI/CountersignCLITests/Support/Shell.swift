import Foundation

@testable import CountersignCLI

/// A shell in a folder. Scripts find the built program as `countersign`.
struct Shell {
    struct Result {
        let status: Int32
        let output: String
        let talk: String
    }

    let folder: String
    var environment: [String: String] = [:]

    /// Runs a script to its end.
    func run(_ script: String) async throws -> Result {
        let process = try prepare(script)
        // Output goes to files: reading a pipe would also wait for background processes of the script.
        let (output, talk) = (folder + "/.stdout", folder + "/.stderr")
        for path in [output, talk] { _ = FileManager.default.createFile(atPath: path, contents: nil) }
        process.standardOutput = FileHandle(forWritingAtPath: output)
        process.standardError = FileHandle(forWritingAtPath: talk)
        try await Self.runToEnd(process)
        return Result(
            status: process.terminationStatus, output: try String(contentsOfFile: output, encoding: .utf8),
            talk: try String(contentsOfFile: talk, encoding: .utf8))
    }

    /// Runs a program until it has printed a line, then terminates it.
    func runUntilFirstLine(_ script: String) async throws -> Result {
        let process = try prepare("exec " + script)
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        let (ends, continuation) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { continuation.yield($0.terminationStatus) }
        try process.run()
        let line = await withTaskCancellationHandler {
            await GatewayProcess.firstLine(of: output.fileHandleForReading)
        } onCancel: {
            Self.end(process)
        }
        process.terminate()
        let status = await ends.first { _ in true }
        return Result(status: status ?? -1, output: line ?? "", talk: "")
    }

    /// Runs a script with a terminal as its input and output.
    func onTerminal(_ script: String) throws -> TerminalProgram {
        try TerminalProgram(try prepare(script))
    }

    private func prepare(_ script: String) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script]
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        process.standardInput = FileHandle.nullDevice
        let programs = folder + "/.bin"
        if !FileManager.default.fileExists(atPath: programs) {
            try FileManager.default.createDirectory(atPath: programs, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: programs + "/countersign", withDestinationPath: Program.path)
        }
        let inherited = ProcessInfo.processInfo.environment
        var all = inherited.filter { !$0.key.hasPrefix("COUNTERSIGN_") }
        all["PATH"] = "\(programs):\(inherited["PATH"] ?? "/usr/bin:/bin")"
        all["XDG_CONFIG_HOME"] = folder + "/config"
        process.environment = all.merging(environment) { _, own in own }
        return process
    }

    private static func runToEnd(_ process: Process) async throws {
        let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
        process.terminationHandler = { _ in continuation.yield() }
        try process.run()
        _ = await ends.first { _ in true }
        // The test's time limit cancels this task. A process that still runs must not outlive the test.
        guard process.isRunning else { return }
        end(process)
        throw CancellationError()
    }

    /// Kills the process group of a script.
    private static func end(_ process: Process) {
        kill(-process.processIdentifier, SIGKILL)
        kill(process.processIdentifier, SIGKILL)
    }
}
