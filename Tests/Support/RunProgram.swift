package import Foundation
import Testing

/// Runs a program to its end. Kills it after a minute.
///
/// Uses files instead of pipes, because a process started by another test could inherit an end of a pipe.
package func runProgram(_ arguments: [String], input: Data = Data()) throws -> (
    status: Int32, output: [UInt8]
) {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("run-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let (source, target) = (folder.appendingPathComponent("in"), folder.appendingPathComponent("out"))
    try input.write(to: source)
    try Data().write(to: target)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    process.standardInput = try FileHandle(forReadingFrom: source)
    process.standardOutput = try FileHandle(forWritingTo: target)
    process.standardError = FileHandle.nullDevice
    let ended = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in ended.signal() }
    try process.run()
    if ended.wait(timeout: .now() + 60) != .success {
        kill(process.processIdentifier, SIGKILL)
        try ended.waitForSignal()
    }
    return (process.terminationStatus, Array(try Data(contentsOf: target)))
}
