internal import CountersignSQLite
internal import Foundation

/// The one thread that touches the queue file and the token store.
///
/// `@unchecked Sendable`: `opened`, `isClosed` and `optOut` are only used on `queue`, which is serial.
final class Storage: @unchecked Sendable {
    /// A file in the directory that says so.
    static let optOutName = "opted-out"

    private let queue: DispatchQueue
    private let directory: URL
    private let limits: QueueLimits
    private let clock: any ClientClock
    private let log: CountersignLog?
    private var opened: EventQueue?
    private var isClosed = false

    // Before the device's first unlock nothing can be read: what there is to do waits until then.
    init(
        directory: URL, limits: QueueLimits, clock: any ClientClock, log: CountersignLog?,
        canOpen: @escaping @Sendable (_ path: String) -> Bool = FirstUnlock.canOpen
    ) {
        self.directory = directory
        self.limits = limits
        self.clock = clock
        self.log = log
        queue = DispatchQueue(label: "countersign.storage", qos: .utility)
        FirstUnlock.hold(queue, clock: clock) { [path] in canOpen(path) }
    }

    /// Runs `body` on the storage thread, after everything that was handed over before.
    func submit(_ body: @escaping @Sendable (Storage) -> Void) {
        queue.async { body(self) }
    }

    /// Runs `body` on the storage thread with the open queue.
    ///
    /// - Throws: What `body` throws, or why the file cannot be opened.
    func perform<Result: Sendable>(
        _ body: @escaping @Sendable (EventQueue) throws -> Result
    ) async throws -> Result {
        try await run { storage in try storage.withQueue(body) }
    }

    /// Runs `body` on the storage thread.
    func run<Result: Sendable>(
        _ body: @escaping @Sendable (Storage) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            submit { storage in continuation.resume(with: Swift.Result { try body(storage) }) }
        }
    }

    /// Opens the file if need be and runs `body`. Only on the storage thread.
    ///
    /// A damaged file is replaced by a fresh one with all that could be read, and `body` runs once more. After an I/O
    /// error the file is opened anew, so that SQLite looks at what the disk really has.
    func withQueue<Result>(_ body: (EventQueue) throws -> Result) throws -> Result {
        do {
            return try body(try open())
        } catch  where QueueRecovery.isDamage(error) {
            log?(.warning, "queue file is damaged, set aside", ["error": "\(error)"])
            opened = nil
            let recovered = try QueueRecovery(path: path, limits: limits, clock: clock).recover()
            opened = recovered
            return try body(recovered)
        } catch let error as SQLiteError where error.isInputOutput {
            log?(.warning, "queue file failed, opening it anew", ["error": "\(error)"])
            opened = nil
            throw error
        }
    }

    /// Closes the file; it is not opened again.
    func close() async {
        await withCheckedContinuation { continuation in
            submit { storage in
                storage.opened = nil
                storage.isClosed = true
                continuation.resume()
            }
        }
    }

    /// Files that were set aside. Only on the storage thread.
    var damagedFiles: Int { QueueRecovery.asideCount(besides: path) }

    // MARK: Opting out

    /// True if the person wants nothing recorded. Only on the storage thread.
    ///
    /// This is a file of its own, so that no damage to the queue can undo it.
    var hasOptedOut: Bool { FileManager.default.fileExists(atPath: optOutPath) }

    /// Only on the storage thread.
    func setOptedOut(_ isOut: Bool) throws {
        guard isOut != hasOptedOut else { return }
        if isOut {
            try makeDirectory()
            try Data().write(to: URL(fileURLWithPath: optOutPath), options: .atomic)
        } else {
            try FileManager.default.removeItem(atPath: optOutPath)
        }
    }

    private var optOutPath: String { directory.appendingPathComponent(Self.optOutName).path }
    private var path: String { directory.appendingPathComponent("queue.sqlite").path }

    private func open() throws -> EventQueue {
        if let opened { return opened }
        guard !isClosed else { throw CountersignError(.closed, "the client is closed") }
        try makeDirectory()
        let queue = try EventQueue(path: path, limits: limits, clock: clock)
        opened = queue
        FileProtection.apply(to: directory)
        return queue
    }

    private func makeDirectory() throws {
        var attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o700]
        #if os(iOS)
            // Readable in the background after the first unlock; SQLite's files inherit it.
            attributes[.protectionKey] = FileProtectionType.completeUntilFirstUserAuthentication
        #endif
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: attributes)
        #if canImport(Darwin)
            // A queue that comes back from a backup would send its events again.
            var url = directory
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try url.setResourceValues(values)
        #endif
    }
}
