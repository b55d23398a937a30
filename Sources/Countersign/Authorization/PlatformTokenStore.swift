internal import CountersignCore
internal import Foundation

/// The Keychain, or where an app may not use it, a file.
///
/// The Keychain outlives the app: what it has at the first run after an installation is of an earlier one, and is removed.
final class PlatformTokenStore: TokenStore {
    private let keychain: any TokenStore
    private let file: any TokenStore
    private let installation: Installation?
    private let log: CountersignLog?
    private let usesFile = Lock(false)

    // `installation` is nil where others may have put tokens into the Keychain.
    init(
        keychain: any TokenStore, file: any TokenStore, installation: Installation?, log: CountersignLog?
    ) {
        self.keychain = keychain
        self.file = file
        self.installation = installation
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
                try installation?.begin { try keychain.removeAll() }
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

/// Whether the app has run before, since it was installed: a file that is removed with the app.
final class Installation: Sendable {
    /// One at a time, so that a second client does not remove what the first has just stored.
    private static let turn = NSLock()

    private let path: String
    private let isFirstRun: Bool

    // To be made before anything is put into the directory.
    init(directory: URL) {
        path = directory.appendingPathComponent("installed").path
        isFirstRun = !["installed", "queue.sqlite"].contains {
            FileManager.default.fileExists(atPath: directory.appendingPathComponent($0).path)
        }
    }

    /// Calls `removeRemains` at the first run, once.
    ///
    /// - Throws: What that throws; it is called again the next time.
    func begin(_ removeRemains: () throws -> Void) throws {
        Self.turn.lock()
        defer { Self.turn.unlock() }
        guard isFirstRun, !FileManager.default.fileExists(atPath: path) else { return }
        try removeRemains()
        try DurableFile.write(Data(), to: path)
    }
}
