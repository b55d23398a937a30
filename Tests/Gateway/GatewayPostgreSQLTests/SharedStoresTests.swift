import CountersignCore
import CountersignGatewayTesting
import Foundation
import Testing

@testable import GatewayModel
@testable import GatewayPostgreSQL
@testable import GatewayStorage

extension PostgreSQLTests {
    /// Engine-independent stores, used by several gateways on one database.
    @Suite(.timeLimit(.minutes(2)))
    struct SharedStoresTests {
        /// Runs `body` on `count` threads and waits for all. Throws the first error.
        static func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
            let failures = Lock<[any Error]>([])
            let group = DispatchGroup()
            for number in 0..<count {
                group.enter()
                Thread.detachNewThread {
                    do { try body(number) } catch { failures.withLock { $0.append(error) } }
                    group.leave()
                }
            }
            group.wait()
            if let failure = failures.withLock({ $0.first }) { throw failure }
        }

        /// The gateways' clocks are an hour apart, many times the reuse window.
        @Test func aRefreshTokenSentToThreeGatewaysAtOnceIsExchangedOnce() throws {
            try TestDatabase.use { database in
                let folder = try TestFolder()
                let storages = try (0..<3).map { _ in
                    try folder.storage(database, takesGivenTime: false)
                }
                let stores = try storages.map {
                    try $0.openTokenFamilies(refreshKey: $0.openSecrets().refreshKey())
                }
                defer { for store in stores { store.close() } }
                var (_, token) = try stores[0].perform { table in
                    try table.open(
                        .init(appID: "shop", subject: "ada", clientID: nil, rules: TokenRules()), at: 0)
                }
                for round in 1...10 {
                    let (shown, children) = (token, Lock<[RefreshToken]>([]))
                    try Self.onThreads(16) { number in
                        let child = try stores[number % 3].perform { table -> RefreshToken? in
                            let presentation = TokenFamilyTable.Presentation(
                                now: Int64(number % 3) * 3_600_000, rules: { _ in TokenRules() })
                            guard case .granted(_, let child) = try table.exchange(shown, presentation) else {
                                return nil
                            }
                            return child
                        }
                        if let child { children.withLock { $0.append(child) } }
                    }
                    let given = children.withLock { $0 }
                    #expect(given.count == 16)
                    #expect(Set(given.map(\.text)).count == 1)
                    token = try #require(given.first)
                    let family = try stores[0].perform { try $0.family(id: shown.familyID) }
                    #expect(family?.generation == round)
                }
            }
        }

        @Test func sixWritersLeaveOneAuditChain() throws {
            try TestDatabase.use { database in
                let folder = try TestFolder()
                let storages = try (0..<3).map { _ in try folder.storage(database) }
                // Each writer changes its own app, so that only the audit chain serializes them.
                for number in 0..<6 {
                    _ = try storages[0].openControl(as: .account).createApp(id: "app-\(number)")
                }
                try Self.onThreads(6) { number in
                    let control = try storages[number % 3].openControl(
                        as: Operator(name: "operator \(number)", role: "owner"))
                    for round in 0..<20 { try control.renameApp("app-\(number)", to: "\(round)") }
                }
                let control = try storages[1].openControl(as: .account)
                let (entries, brokenAt) = try control.auditLog.verify()
                #expect(entries == 126 && brokenAt == nil)
            }
        }

        @Test func tokenKeysAreStoredSealedInTheDatabase() throws {
            try TestDatabase.use { database in
                let folder = try TestFolder()
                let secrets = try folder.storage(database).openSecrets()
                let key = try secrets.refreshKey()
                let signer = try secrets.signer(at: 1)
                let mode = try FileManager.default.attributesOfItem(atPath: folder.tokenKeyFile)[
                    .posixPermissions]
                #expect(mode as? Int == 0o600)

                let other = try folder.storage(database).openSecrets()
                #expect(try other.refreshKey() == key)
                #expect(try other.signer(at: 1).id == signer.id)
                let connection = try database.connect()
                let kept = try connection.all(
                    "SELECT key FROM refresh_key UNION ALL SELECT convert_to(pem, 'UTF8') FROM signing_key"
                ) { $0.blob(0) }
                #expect(kept.count == 2)
                for bytes in kept {
                    #expect(bytes != key)
                    #expect(!String(decoding: bytes, as: UTF8.self).contains("PRIVATE KEY"))
                }
            }
        }

        /// Two gateways with one folder start at the same time. One creates the file and the keys while the
        /// other looks for them.
        @Test func aTokenKeyFileCreatedConcurrentlyIsUsed() throws {
            struct Meanwhile: SQLReader {
                let secrets: any SQLReader
                let work: @Sendable () throws -> Void
                var isThere: Bool { secrets.isThere }

                func read<Result>(
                    _ body: (any SQLConnection) throws -> Result
                ) throws(GatewayError) -> Result {
                    try GatewayError.storing { try work() }
                    return try secrets.read(body)
                }
            }
            try TestDatabase.use { database in
                let folder = try TestFolder()
                let secrets = PostgreSQLDatabase(PostgreSQLPool(database.settings, connections: 1), .secrets)
                let reader = Meanwhile(secrets: secrets) { _ = try folder.storage(database).openSecrets() }
                let seal = try PostgreSQLStorage.tokenKeySeal(folder.tokenKeyFile, for: reader)
                #expect(seal.path == folder.tokenKeyFile)
            }
        }

        @Test func aTokenKeyFileOfAnotherDatabaseIsRejected() throws {
            try TestDatabase.use { database in
                let (folder, other) = (try TestFolder(), try TestFolder())
                _ = try folder.storage(database).openSecrets()
                var error = #expect(throws: GatewayError.self) { try other.storage(database).openSecrets() }
                #expect(error?.code == .conflict)
                #expect(error?.reason.contains(other.tokenKeyFile) == true)
                #expect(!FileManager.default.fileExists(atPath: other.tokenKeyFile))

                _ = try TokenKeySeal(making: other.tokenKeyFile)
                error = #expect(throws: GatewayError.self) { try other.storage(database).openSecrets() }
                #expect(error?.code == .conflict)
                try Data("short".utf8).write(to: URL(fileURLWithPath: other.tokenKeyFile))
                error = #expect(throws: GatewayError.self) { try other.storage(database).openSecrets() }
                #expect(error?.code == .invalid)
                // The file is a line of text, so it can be copied by hand.
                try FileManager.default.removeItem(atPath: other.tokenKeyFile)
                try FileManager.default.copyItem(atPath: folder.tokenKeyFile, toPath: other.tokenKeyFile)
                _ = try other.storage(database).openSecrets()
            }
        }
    }
}
