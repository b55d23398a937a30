internal import CountersignTransport
internal import Foundation

/// Stores the pair of tokens, and lets one process at a time refresh it. Calls of one actor run in their order.
///
/// `@unchecked Sendable`: `descriptor` is only used on `queue`, which is serial.
final class TokenPairStore: @unchecked Sendable {
    /// Seconds to wait for another process that refreshes: longer than the request of a refresh may take.
    private static let patience: TimeInterval = 45
    private static let key = "access-token"

    private let queue = DispatchQueue(label: "countersign.credentials", qos: .utility)
    private let store: any TokenStore
    private let lockFile: URL
    /// Locked for a single change. `lockFile` is locked during a whole refresh.
    private let changeLock: String
    /// Has a new epoch after each call of `removePair()`. A new epoch invalidates all earlier pairs.
    private let epochFile: SlotFile
    private var descriptor: Int32 = -1

    init(store: any TokenStore, lockFile: URL) {
        self.store = store
        self.lockFile = lockFile
        changeLock = lockFile.path + ".change"
        epochFile = SlotFile(path: lockFile.path + ".epoch")
    }

    private struct Entry: Codable {
        private enum CodingKeys: String, CodingKey {
            case epoch
        }

        let pair: TokenPair
        /// Empty or nil before the first deletion of tokens.
        let epoch: String?

        init(pair: TokenPair, epoch: String) {
            self.pair = pair
            self.epoch = epoch
        }

        init(from decoder: any Decoder) throws {
            pair = try TokenPair(from: decoder)
            epoch = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(
                String.self, forKey: .epoch)
        }

        func encode(to encoder: any Encoder) throws {
            try pair.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(epoch, forKey: .epoch)
        }
    }

    /// A consistent snapshot of the store.
    struct Stored: Sendable, Equatable {
        let pair: TokenPair?
        /// Changes when any process deletes the tokens.
        let epoch: String
    }

    /// Throws when the store cannot be read now.
    func load(isolation: isolated (any Actor)? = #isolation) async throws -> Stored {
        try await perform { pairs in try pairs.stored }
    }

    func epoch(isolation: isolated (any Actor)? = #isolation) async throws -> String {
        try await perform { pairs in try pairs.epoch }
    }

    /// Stores the pair, so that it survives a power failure. Returns the epoch of the pair.
    func save(_ pair: TokenPair, isolation: isolated (any Actor)? = #isolation) async throws -> String {
        try await perform { pairs in
            try FileLock.withLock(at: pairs.changeLock) { lock in
                let epoch = try pairs.epoch
                try lock.check()
                try pairs.put(pair, epoch)
                return epoch
            }
        }
    }

    /// Compare and swap. If another process has changed the pair since `base` and `epoch` were read, changes nothing
    /// and returns the pair of that process.
    func replace(
        _ base: TokenPair?, of epoch: String, with pair: TokenPair,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> Stored? {
        try await perform { pairs in
            try FileLock.withLock(at: pairs.changeLock) { lock in
                let present = try pairs.stored
                guard present.epoch == epoch, present.pair == base || present.pair == pair else {
                    return present
                }
                try lock.check()
                try pairs.put(pair, epoch)
                return nil
            }
        }
    }

    /// Stores and returns a new epoch, which makes the pair invalid even if its removal fails. Removes the pair.
    func removePair(isolation: isolated (any Actor)? = #isolation) async throws -> String {
        try await perform { pairs in
            try FileLock.withLock(at: pairs.changeLock) { lock in
                let epoch = UUID().uuidString
                try lock.check()
                let writing = Swift.Result {
                    try pairs.epochFile.write(Array(epoch.utf8))
                    try pairs.epochFile.synchronize(by: WriteAheadLog.makeDurable)
                }
                try pairs.store.removeToken(for: Self.key)
                try writing.get()
                return epoch
            }
        }
    }

    private var epoch: String {
        get throws {
            switch epochFile.content {
            case .missing: ""
            case .value(let bytes): String(decoding: bytes, as: UTF8.self)
            // The tokens may have been deleted. Pairs of every stored epoch are invalid.
            case .unreadable: "unreadable"
            case .inaccessible: throw POSIXError(.EPERM)
            }
        }
    }

    private var stored: Stored {
        get throws {
            let epoch = try epoch
            // An unreadable entry counts as no pair. The app then sets its own.
            let entry = try store.token(for: Self.key).flatMap {
                try? JSONDecoder().decode(Entry.self, from: Data($0.utf8))
            }
            return Stored(pair: entry.flatMap { $0.epoch ?? "" == epoch ? $0.pair : nil }, epoch: epoch)
        }
    }

    private func put(_ pair: TokenPair, _ epoch: String) throws {
        let entry = Entry(pair: pair, epoch: epoch)
        try store.store(String(decoding: try JSONEncoder().encode(entry), as: UTF8.self), for: Self.key)
    }

    /// Waits until no other process refreshes. The system releases the lock of a process that ends. Throws when
    /// another process holds it for too long, or the file cannot be created.
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
                // A forked child shares the descriptor, so closing it here would not release the lock.
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

    // Runs on the caller's actor until `queue.async`, so that the queue has the order of the actor's calls.
    private func perform<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable (TokenPairStore) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Swift.Result { try body(self) }) }
        }
    }
}
