import Foundation

/// The bytes, so many times, as one gzip member, by the system's own program.
func gzip(_ bytes: [UInt8], times: Int = 1) throws -> [UInt8] {
    var input = Data(capacity: bytes.count * times)
    for _ in 0..<times { input.append(contentsOf: bytes) }
    return try runProgram(["gzip", "-1c"], input: input).output
}
