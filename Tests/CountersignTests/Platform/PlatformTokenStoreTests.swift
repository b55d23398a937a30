import CountersignCore
import Foundation
import Testing

@testable import Countersign

/// The Keychain's part is played by a store in memory.
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

    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
        "countersign-keychain-\(UUID().uuidString)")
    private let keychain = FakeKeychain()
    private let lines = Lock([String]())

    private func make(installation: Installation? = nil) -> PlatformTokenStore {
        PlatformTokenStore(
            keychain: keychain,
            file: FileTokenStore(directory: directory.appendingPathComponent("tokens")),
            installation: installation,
            log: CountersignLog(isEnabled: { _ in true }) { [lines] _, text, values in
                lines.withLock { $0.append("\(text) \(values)") }
            })
    }

    private func removeFiles() { try? FileManager.default.removeItem(at: directory) }

    @Test func withoutTheRightToTheKeychainTokensAreInAFileAndThatIsSaidOnce() throws {
        defer { removeFiles() }
        keychain.status.withLock { $0 = -34018 }
        let store = make()
        try store.store("a.b.c", for: "ada")
        #expect(try store.token(for: "ada") == "a.b.c")
        #expect(try make().token(for: "ada") == "a.b.c", "in the next run too")
        try store.removeToken(for: "ada")
        try store.store("a.b.c", for: "bob")
        try store.removeAll()
        #expect(try store.token(for: "bob") == nil)
        #expect(keychain.calls.withLock { $0 } == 2, "once in each run")
        #expect(lines.withLock { $0 }.count == 2, "once in each run")
        #expect(lines.withLock { $0 }.allSatisfy { $0.contains("-34018") && !$0.contains("ada") })
    }

    /// Before the first unlock, the Keychain must not be taken for empty.
    @Test(arguments: [-25308, -25291, -25299, -50] as [Int32])
    func anyOtherFailureIsToldAndTheKeychainIsAskedAgain(status: Int32) throws {
        defer { removeFiles() }
        keychain.tokens.withLock { $0["ada"] = "a.b.c" }
        keychain.status.withLock { $0 = status }
        let store = make()
        #expect(throws: KeychainError(status: status)) { try store.token(for: "ada") }
        #expect(throws: KeychainError(status: status)) { try store.store("d.e.f", for: "ada") }
        keychain.status.withLock { $0 = nil }
        #expect(try store.token(for: "ada") == "a.b.c")
        #expect(lines.withLock { $0 }.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: directory.appendingPathComponent("tokens").path))
    }

    @Test func tokensOfAnEarlierInstallationAreRemovedAtTheFirstRun() throws {
        defer { removeFiles() }
        keychain.tokens.withLock { $0["access-token"] = "old" }
        let first = make(installation: Installation(directory: directory))
        // Made before the first has done anything, as by a second client.
        let second = make(installation: Installation(directory: directory))
        #expect(try first.token(for: "access-token") == nil)
        try first.store("new", for: "access-token")
        #expect(try second.token(for: "access-token") == "new")
        #expect(
            try make(installation: Installation(directory: directory)).token(for: "access-token") == "new")
    }

    @Test func tokensStayWhenAnAppIsUpdated() throws {
        defer { removeFiles() }
        keychain.tokens.withLock { $0["access-token"] = "good" }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data().write(to: directory.appendingPathComponent("queue.sqlite"))
        let store = make(installation: Installation(directory: directory))
        #expect(try store.token(for: "access-token") == "good")
    }

    @Test func aKeychainThatCannotBeEmptiedNowIsEmptiedLater() throws {
        defer { removeFiles() }
        keychain.tokens.withLock { $0["access-token"] = "old" }
        keychain.status.withLock { $0 = -25308 }
        let store = make(installation: Installation(directory: directory))
        #expect(throws: KeychainError(status: -25308)) { try store.token(for: "access-token") }
        keychain.status.withLock { $0 = nil }
        // The queue is there by now.
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data().write(to: directory.appendingPathComponent("queue.sqlite"))
        #expect(try store.token(for: "access-token") == nil)
    }

    @Test func anErrorOfTheKeychainSaysItsNumberOnly() {
        #expect("\(KeychainError(status: -34018))" == "Keychain status -34018")
    }
}
