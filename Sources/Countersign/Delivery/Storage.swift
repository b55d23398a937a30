internal import CountersignSQLite
internal import Foundation

/// The one thread that touches the queue file.
///
/// `@unchecked Sendable`: `opened` is only used on `queue`, which is serial.
final class Storage: @unchecked Sendable {
    private let queue: DispatchQueue
    private let directory: URL
    private let limits: QueueLimits
    private let clock: any ClientClock
    private var opened: EventQueue?
    private var isClosed = false

    init(directory: URL, limits: QueueLimits, clock: any ClientClock) {
        self.directory = directory
        self.limits = limits
        self.clock = clock
        queue = DispatchQueue(label: "countersign.storage", qos: .utility)
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
        try await withCheckedThrowingContinuation { continuation in
            submit { storage in
                continuation.resume(with: Swift.Result { try storage.withQueue(body) })
            }
        }
    }

    /// Opens the file if need be and runs `body`. Only on the storage thread.
    func withQueue<Result>(_ body: (EventQueue) throws -> Result) throws -> Result {
        try body(try open())
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

    private func open() throws -> EventQueue {
        if let opened { return opened }
        guard !isClosed else { throw CountersignError(.closed, "the client is closed") }
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let queue = try EventQueue(
            path: directory.appendingPathComponent("queue.sqlite").path, limits: limits, clock: clock)
        opened = queue
        return queue
    }
}
