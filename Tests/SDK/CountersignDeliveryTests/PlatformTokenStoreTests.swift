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

    private let temporary = TemporaryFolder()
    private var directory: URL { temporary.url }
    private let keychain = FakeKeychain()
    private let lines = Lock([String]())

    /// Tokens that an earlier version stored elsewhere in the Keychain.
    private let former = Lock([String: String]())

    /// A run of the app with its queue in `folder`.
    private func run(queueIn folder: String = "queue") -> PlatformTokenStore {
        make(
            installation: Installation(
                directory: directory.appendingPathComponent("home"), name: "default",
                formerDirectories: [directory.appendingPathComponent(folder)]))
    }

    private func writeQueue(_ name: String = "queue.sqlite", in folder: String = "queue") throws {
        let folder = directory.appendingPathComponent(folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data().write(to: folder.appendingPathComponent(name))
    }

    private func make(installation: Installation? = nil) -> PlatformTokenStore {
        PlatformTokenStore(
            keychain: keychain,
            file: FileTokenStore(directory: directory.appendingPathComponent("tokens")),
            installation: installation,
            adopt: { [keychain, former] in
                let tokens = former.withLock { former in
                    defer { former = [:] }
                    return former
                }
                keychain.tokens.withLock { $0.merge(tokens) { new, _ in new } }
            },
            log: CountersignLog(isEnabled: { _ in true }) { [lines] _, text, values in
                lines.withLock { $0.append("\(text) \(values)") }
            })
    }

    @Test func withoutKeychainEntitlementTokensAreInAFileWithOneWarning() throws {
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

    /// Before the first unlock, the Keychain cannot be read but is not empty.
    @Test(arguments: [-25308, -25291, -25299, -50] as [Int32])
    func anyOtherFailureIsReportedAndTheKeychainIsAskedAgain(status: Int32) throws {
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
        keychain.tokens.withLock { $0["access-token"] = "old" }
        former.withLock { $0["access-token"] = "older" }
        let first = run()
        // Created before the first one is used, as by a second client.
        let second = run()
        #expect(try first.token(for: "access-token") == nil)
        try first.store("new", for: "access-token")
        #expect(try second.token(for: "access-token") == "new")
        #expect(try run().token(for: "access-token") == "new")
    }

    @Test(arguments: ["queue.sqlite", "installed"])
    func tokensStayWhenAnAppIsUpdated(file: String) throws {
        former.withLock { $0["access-token"] = "good" }
        try writeQueue(file)
        #expect(try run().token(for: "access-token") == "good")
        former.withLock { $0["access-token"] = "of another app" }
        #expect(try run().token(for: "access-token") == "good", "once")
    }

    @Test func tokensStayWhenTheAppNamesAnotherFolder() throws {
        try run(queueIn: "first").store("good", for: "access-token")
        try writeQueue(in: "first")
        #expect(try run(queueIn: "second").token(for: "access-token") == "good")
        // The folder may be a cache folder, which the system may empty.
        #expect(try run(queueIn: "first").token(for: "access-token") == "good")
    }

    /// The first run after an installation may have no user.
    @Test func oldKeychainTokensAreRemovedEvenIfTheFirstRunUsedNone() throws {
        keychain.tokens.withLock { $0["access-token"] = "old" }
        _ = run()
        try writeQueue()
        #expect(try run().token(for: "access-token") == nil)
    }

    @Test func aKeychainThatCannotBeEmptiedNowIsEmptiedLater() throws {
        keychain.tokens.withLock { $0["access-token"] = "old" }
        keychain.status.withLock { $0 = -25308 }
        let store = run()
        #expect(throws: KeychainError(status: -25308)) { try store.token(for: "access-token") }
        keychain.status.withLock { $0 = nil }
        // The queue exists by now.
        try writeQueue()
        #expect(try store.token(for: "access-token") == nil)
        try store.store("new", for: "access-token")
        #expect(try run().token(for: "access-token") == "new")
    }

    @Test func failedMigrationOfTokensIsRetried() throws {
        try writeQueue()
        let isOpen = Lock(false)
        func open() throws {
            if !isOpen.withLock({ $0 }) { throw KeychainError(status: -25308) }
        }
        let installation = Installation(
            directory: directory.appendingPathComponent("home"), name: "default",
            formerDirectories: [directory.appendingPathComponent("queue")])
        #expect(throws: KeychainError(status: -25308)) {
            try installation.begin(removeRemains: {}, adopt: open)
        }
        isOpen.withLock { $0 = true }
        try installation.begin(removeRemains: { Issue.record("not the first run") }, adopt: open)
        isOpen.withLock { $0 = false }
        try installation.begin(removeRemains: {}, adopt: open)
    }

    @Test func aKeychainErrorContainsOnlyItsStatus() {
        #expect("\(KeychainError(status: -34018))" == "Keychain status -34018")
    }
}
