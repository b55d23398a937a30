import CountersignCore
import CountersignTesting
import Foundation
import Testing

@testable import CountersignDelivery

/// A store in memory replaces the Keychain.
struct PlatformTokenStoreTests {
    private final class FakeKeychain: TokenStore {
        let tokens = Lock([String: String]())
        let status = Lock<Int32?>(nil)
        let calls = Lock(0)

        private func check() throws {
            calls.withLock { $0 += 1 }
            if let status = status.withLock({ $0 }) { throw KeychainError(status: status) }
        }

        func token(for userID: String) throws -> String? {
            try check()
            return tokens.withLock { $0[userID] }
        }

        func store(_ token: String, for userID: String) throws {
            try check()
            tokens.withLock { $0[userID] = token }
        }

        func removeToken(for userID: String) throws {
            try check()
            tokens.withLock { $0[userID] = nil }
        }

        func removeAll() throws {
            try check()
            tokens.withLock { $0 = [:] }
        }
    }

    private let folder = TemporaryFolder()
    private var directory: URL { folder.url }
    private let keychain = FakeKeychain()
    private let lines = Lock([String]())

    /// A run of the app.
    private func run(hasInstallation: Bool = true) -> PlatformTokenStore {
        PlatformTokenStore(
            keychain: keychain,
            file: FileTokenStore(directory: directory.appendingPathComponent("tokens")),
            installation: hasInstallation ? directory.appendingPathComponent("home/.installed").path : nil,
            log: CountersignLog(isEnabled: { _ in true }) { [lines] _, text, values in
                lines.withLock { $0.append("\(text) \(values)") }
            })
    }

    @Test func withoutKeychainEntitlementTokensAreInAFileWithOneWarning() throws {
        keychain.status.withLock { $0 = -34018 }
        let store = run(hasInstallation: false)
        try store.store("a.b.c", for: "ada")
        #expect(try store.token(for: "ada") == "a.b.c")
        #expect(try run(hasInstallation: false).token(for: "ada") == "a.b.c", "in the next run too")
        try store.removeToken(for: "ada")
        try store.store("a.b.c", for: "bob")
        try store.removeAll()
        #expect(try store.token(for: "bob") == nil)
        #expect(keychain.calls.withLock { $0 } == 2, "once in each run")
        #expect(lines.withLock { $0 }.count == 2, "once in each run")
        #expect(lines.withLock { $0 }.allSatisfy { $0.contains("-34018") && !$0.contains("ada") })
    }

    /// Before the first unlock, the Keychain cannot be read but is not empty.
    @Test(arguments: [-25308, -25291, -25299, -50] as [Int32])
    func aFailureOtherThanAMissingEntitlementIsThrownAndTheKeychainIsTriedAgain(status: Int32) throws {
        keychain.tokens.withLock { $0["ada"] = "a.b.c" }
        keychain.status.withLock { $0 = status }
        let store = run(hasInstallation: false)
        #expect(throws: KeychainError(status: status)) { try store.token(for: "ada") }
        #expect(throws: KeychainError(status: status)) { try store.store("d.e.f", for: "ada") }
        keychain.status.withLock { $0 = nil }
        #expect(try store.token(for: "ada") == "a.b.c")
        #expect(lines.withLock { $0 }.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: directory.appendingPathComponent("tokens").path))
    }

    @Test func tokensOfAnEarlierInstallationAreRemovedAtTheFirstUse() throws {
        keychain.tokens.withLock { $0["access-token"] = "old" }
        let first = run()
        // A second client may create its store before the first client uses one.
        let second = run()
        #expect(try first.token(for: "access-token") == nil)
        try first.store("new", for: "access-token")
        #expect(try second.token(for: "access-token") == "new")
        #expect(try run().token(for: "access-token") == "new", "in the next run too")
    }

    @Test func aKeychainThatCannotBeEmptiedNowIsEmptiedLater() throws {
        keychain.tokens.withLock { $0["access-token"] = "old" }
        keychain.status.withLock { $0 = -25308 }
        let store = run()
        #expect(throws: KeychainError(status: -25308)) { try store.token(for: "access-token") }
        keychain.status.withLock { $0 = nil }
        #expect(try store.token(for: "access-token") == nil)
        try store.store("new", for: "access-token")
        #expect(try run().token(for: "access-token") == "new")
    }

    @Test func aKeychainErrorContainsOnlyItsStatus() {
        #expect("\(KeychainError(status: -34018))" == "Keychain status -34018")
    }
}
