internal import Foundation

/// Keeps the pair of tokens in a `TokenStore`, and lets one process at a time refresh it.
///
/// What an actor asks for is done in the order in which it asks.
///
/// `@unchecked Sendable`: `descriptor` is only used on `queue`, which is serial.
final class TokenPairStore: @unchecked Sendable {
    /// Seconds to wait for a process that is refreshing: longer than its request may take.
    private static let patience: TimeInterval = 45
    /// The name under which the pair stands in the store.
    private static let key = "access-token"

    private let queue = DispatchQueue(label: "countersign.credentials", qos: .utility)
    private let store: any TokenStore
    private let lockFile: URL
    /// Of the lock for a single change; the other one is held for as long as a refresh takes.
    private let changeLock: String
    private var descriptor: Int32 = -1

    init(store: any TokenStore, lockFile: URL) {
        self.store = store
        self.lockFile = lockFile
        changeLock = lockFile.path + ".change"
    }

    /// Throws when the store cannot be read now.
    func load(isolation: isolated (any Actor)? = #isolation) async throws -> TokenPair? {
        try await perform { pairs in try pairs.pair }
    }

    /// When it returns, the pair survives a power failure.
    func save(_ pair: TokenPair, isolation: isolated (any Actor)? = #isolation) async throws {
        try await perform { pairs in
            try FileLock.withLock(at: pairs.changeLock) { try pairs.put(pair) }
        }
    }

    enum Replacement: Sendable {
        /// When it returns, the pair survives a power failure.
        case stored
        /// Another process has put in or removed something meanwhile.
        case superseded(by: TokenPair?)
    }

    /// Puts a pair where `base` is; what others have done since that was read stays.
    func replace(
        _ base: TokenPair?, with pair: TokenPair, isolation: isolated (any Actor)? = #isolation
    ) async throws -> Replacement {
        try await perform { pairs in
            try FileLock.withLock(at: pairs.changeLock) {
                let present = try pairs.pair
                guard present == base || present == pair else { return .superseded(by: present) }
                try pairs.put(pair)
                return .stored
            }
        }
    }

    func forget(isolation: isolated (any Actor)? = #isolation) async throws {
        try await perform { pairs in
            try FileLock.withLock(at: pairs.changeLock) { try pairs.store.removeToken(for: Self.key) }
        }
    }

    private var pair: TokenPair? {
        get throws {
            // What cannot be read as a pair is none: the app hands over its own.
            try store.token(for: Self.key).flatMap {
                try? JSONDecoder().decode(TokenPair.self, from: Data($0.utf8))
            }
        }
    }

    private func put(_ pair: TokenPair) throws {
        let text = String(decoding: try JSONEncoder().encode(pair), as: UTF8.self)
        try store.store(text, for: Self.key)
    }

    /// Waits until no other process refreshes. The system releases the lock of a process that dies. Throws when another
    /// process holds the lock for too long, or the file cannot be made.
    func lock(clock: any ClientClock, isolation: isolated (any Actor)? = #isolation) async throws {
        let deadline = clock.uptime + Self.patience
        while try await perform({ pairs in try pairs.tryLock() }) == false {
            guard clock.uptime < deadline else { throw POSIXError(.ETIMEDOUT) }
            try await clock.sleep(until: clock.uptime + 0.05)
        }
    }

    func unlock(isolation: isolated (any Actor)? = #isolation) async {
        _ = try? await perform { pairs in
            if pairs.descriptor >= 0 {
                // A child that the app is just making has the descriptor too, and would keep what closing alone lets go.
                flock(pairs.descriptor, LOCK_UN)
                close(pairs.descriptor)
            }
            pairs.descriptor = -1
        }
    }

    private func tryLock() throws -> Bool {
        try FileManager.default.createDirectory(
            at: lockFile.deletingLastPathComponent(), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        let file = open(lockFile.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            close(file)
            return false
        }
        descriptor = file
        return true
    }

    // On the caller's actor, so that nothing comes between what it decides and its place in the queue.
    private func perform<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable (TokenPairStore) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Swift.Result { try body(self) }) }
        }
    }
}
