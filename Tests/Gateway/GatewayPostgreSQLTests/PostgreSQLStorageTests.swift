import Foundation
import Testing

@testable import CountersignGatewayTesting
@testable import GatewayModel
@testable import GatewayPostgreSQL

extension StorageConformance: CustomTestStringConvertible {
    package var testDescription: String { description }
}

extension PostgreSQLTests {
    @Suite(.timeLimit(.minutes(5)))
    struct PostgreSQLStorageTests {
        @Test(arguments: StorageConformance.checks.filter { !$0.needsCopy })
        func passesTheConformanceSuite(_ check: StorageConformance) throws {
            try TestDatabase.use { database in
                let folder = try TestFolder()
                try check.run(on: try folder.storage(database), wait: database.waitForTransactions) { _ in
                    throw StorageConformance.Violation(description: "needsCopy is false, but it copies")
                }
            }
        }

        @Test func aBackupOfADatabaseIsRejectedWithAHintAtPgDump() throws {
            try TestDatabase.use { database in
                let folder = try TestFolder()
                let storage = try folder.storage(database)
                let error = #expect(throws: GatewayError.self) {
                    try storage.backUp(in: folder.path, floorBytes: 0)
                }
                #expect(error?.code == .invalid)
                #expect(error?.reason.contains("pg_dump") == true)
            }
        }
    }
}

/// A temporary folder, such as for the token key file.
final class TestFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/postgresql-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var tokenKeyFile: String { path + "/token-key" }

    /// The storage of one gateway. With `takesGivenTime`, leases expire by the test's clock.
    func storage(_ database: TestDatabase, takesGivenTime: Bool = true) throws -> PostgreSQLStorage {
        try PostgreSQLStorage(
            try #require(database.address(tokenKeyFile: tokenKeyFile, takesGivenTime: takesGivenTime)))
    }
}
