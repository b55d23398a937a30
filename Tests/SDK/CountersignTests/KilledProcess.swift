import Foundation
import TestSupport

@testable import Countersign
@testable import CountersignDelivery

extension Bench {
    /// A bench with the files that a kill at this moment would leave.
    func killedCopy() throws -> Bench {
        var copy = try Bench()
        try copyAsKilled(configuration.instanceDirectory, leaving: copy.configuration.instanceDirectory)
        copy.configuration.tokenStore = configuration.tokenStore
        copy.configuration.limits = configuration.limits
        return copy
    }
}

/// Copies the files of a client as if its process were killed now. The logs get a process ID that does not exist.
func copyAsKilled(_ source: URL, leaving target: URL) throws {
    try FileManager.default.createDirectory(
        at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
    try copyRunning(source, to: target)
    for name in try FileManager.default.contentsOfDirectory(atPath: target.path)
    where name.hasPrefix(WriteAheadLog.prefix) {
        var parts = name.split(separator: "-").map(String.init)
        parts[parts.count - 2] = "\(0x3FFF_FFFF)"
        try FileManager.default.moveItem(
            at: target.appendingPathComponent(name),
            to: target.appendingPathComponent(parts.joined(separator: "-")))
    }
}
