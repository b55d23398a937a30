import Foundation

/// The bytes, so many times, as one gzip member, by the system's own program.
func gzip(_ bytes: [UInt8], times: Int = 1) throws -> [UInt8] {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["gzip", "-c"]
    let input = Pipe()
    let output = Pipe()
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    Thread.detachNewThread {
        for _ in 0..<times { input.fileHandleForWriting.write(Data(bytes)) }
        try? input.fileHandleForWriting.close()
    }
    let packed = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Array(packed)
}
