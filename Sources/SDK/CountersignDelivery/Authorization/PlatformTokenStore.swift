internal import CountersignCore
internal import Foundation

/// Stores tokens in the Keychain, or in a file if the app has no access to the Keychain.
///
/// Keychain items survive the removal of an app, so the first use after an installation removes old items.
final class PlatformTokenStore: TokenStore {
    private let keychain: any TokenStore
    private let file: any TokenStore
    /// The path of a directory that is removed with the app. It exists once the tokens of an earlier installation were
    /// removed. A directory, because a file cannot be created before the device's first unlock. Nil if other apps may
    /// store tokens in the same Keychain items.
    private let installation: String?
    private let log: CountersignLog?
    private let usesFile = Lock(false)
    /// Serializes clients, so that a second one does not remove the tokens that the first has just stored.
    private static let beginning = NSLock()

    init(
        keychain: any TokenStore, file: any TokenStore, installation: String?, log: CountersignLog?
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
                try removeTokensOfEarlierInstallation()
                return try body(keychain)
            } catch let error as KeychainError where error.isPermanent {
                let isFirst = usesFile.withLock { usesFile in
                    defer { usesFile = true }
                    return !usesFile
                }
                if isFirst {
                    log?(
                        .warning, "the app may not use the Keychain, tokens are stored in a file",
                        ["error": "\(error)"])
                }
            }
        }
        return try body(file)
    }

    private func removeTokensOfEarlierInstallation() throws {
        guard let installation else { return }
        try Self.beginning.withLock {
            guard !FileManager.default.fileExists(atPath: installation) else { return }
            try keychain.removeAll()
            try makePrivateDirectory(installation)
        }
    }
}
