internal import CountersignCore
internal import Foundation

/// Stores tokens in the Keychain, or in a file where the app has no access to the Keychain.
///
/// Keychain items survive the removal of an app, so the first run after an installation removes old items.
final class PlatformTokenStore: TokenStore {
    private let keychain: any TokenStore
    private let file: any TokenStore
    private let installation: Installation?
    private let adopt: @Sendable () throws -> Void
    private let log: CountersignLog?
    private let usesFile = Lock(false)

    // `installation` is nil if other apps may store tokens in the same Keychain items.
    init(
        keychain: any TokenStore, file: any TokenStore, installation: Installation?,
        adopt: @escaping @Sendable () throws -> Void = {}, log: CountersignLog?
    ) {
        self.keychain = keychain
        self.file = file
        self.installation = installation
        self.adopt = adopt
        self.log = log
    }

    func token(for userID: String) throws -> String? {
        try perform { store in try store.token(for: userID) }
    }

    func store(_ token: String, for userID: String) throws {
        try perform { store in try store.store(token, for: userID) }
    }

    func removeToken(for userID: String) throws {
        try perform { store in try store.removeToken(for: userID) }
    }

    func removeAll() throws {
        try perform { store in try store.removeAll() }
    }

    private func perform<Result>(_ body: (any TokenStore) throws -> Result) throws -> Result {
        if !usesFile.withLock({ $0 }) {
            do {
                try installation?.begin(removeRemains: { try keychain.removeAll() }, adopt: adopt)
                return try body(keychain)
            } catch let error as KeychainError where error.isPermanent {
                let isFirst = usesFile.withLock { usesFile in
                    defer { usesFile = true }
                    return !usesFile
                }
                if isFirst {
                    log?(
                        .warning, "the app may not use the Keychain, tokens are kept in a file",
                        ["error": "\(error)"])
                }
            }
        }
        return try body(file)
    }
}

/// Detects the first run after an installation, by marks in a directory that is removed with the app. The marks are
/// directories, because a file cannot be created before the device's first unlock.
final class Installation: Sendable {
    /// Serializes clients, so that a second one does not remove the tokens that the first has just stored.
    private static let turn = NSLock()

    /// A mark: Keychain items of an earlier installation must be removed.
    private let fresh: String
    private let done: String
    private let isFirstRun: Bool

    /// Call it before the queue is created. Stores the result, because the first run may need no token.
    init(directory: URL, name: String, formerDirectories: [URL]) {
        func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
        // The names of instances do not begin with a dot.
        fresh = directory.appendingPathComponent(".\(name).fresh").path
        done = directory.appendingPathComponent(".\(name).installed").path
        isFirstRun =
            exists(fresh)
            || !formerDirectories.contains { former in
                ["installed", "queue.sqlite"].contains { exists(former.appendingPathComponent($0).path) }
            }
        if isFirstRun, !exists(done) { try? Self.make(fresh) }
    }

    /// Calls `removeRemains` at the first run and `adopt` otherwise, until one call has succeeded.
    func begin(removeRemains: () throws -> Void, adopt: () throws -> Void) throws {
        Self.turn.lock()
        defer { Self.turn.unlock() }
        guard !FileManager.default.fileExists(atPath: done) else { return }
        if isFirstRun { try removeRemains() } else { try adopt() }
        try Self.make(done)
        try? FileManager.default.removeItem(atPath: fresh)
    }

    private static func make(_ path: String) throws {
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
}
