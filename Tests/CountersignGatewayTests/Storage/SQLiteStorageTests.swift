import CountersignGatewayTesting
import Foundation
import Testing

@testable import GatewayStorage

extension StorageConformance: CustomTestStringConvertible {
    package var testDescription: String { description }
}

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct SQLiteStorageTests {
    @Test(arguments: StorageConformance.checks)
    func doesWhatEveryEngineMust(_ check: StorageConformance) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "storage-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try check.run(on: try SQLiteStorage(dataDirectory: folder.path + "/data")) { backup in
            _ = try Backup.restore(backup.path, to: folder.path + "/restored")
            return try SQLiteStorage(dataDirectory: folder.path + "/restored")
        }
    }
}
