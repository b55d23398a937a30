internal import CountersignCore
internal import Dispatch
internal import Foundation
internal import GatewayAdmission
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

/// Removes what is kept of apps that were deleted, until nothing is left and their ids are free.
///
/// What an app accepted requests by went with the app itself. What is left to do is in the directory of apps, so a gateway
/// that starts goes on where another one stopped.
final class DeletedApps: Sendable {
    /// An id stays taken for at least so long: a request that was admitted before may still be on its way to the disk.
    private static let shortestMilliseconds: Int64 = 60_000

    private let directory: AppDirectory
    private let registry: AppRegistry
    private let data: [any AppData]
    private let sessions: SessionStore
    private let freed: @Sendable (String) -> Void
    private let hasDuty: @Sendable () -> Bool
    private let log: GatewayLog
    private let now: @Sendable () -> Date
    private let queue = DispatchQueue(label: "deleted apps", qos: .utility)
    private let ticker: Ticker

    /// `data` is everything that stores data of apps, including `sessions`. `hasDuty` is false while another gateway
    /// deletes apps. `freed` is called when an id is about to become available again.
    init(
        directory: AppDirectory, registry: AppRegistry, data: [any AppData], sessions: SessionStore,
        freed: @escaping @Sendable (String) -> Void, hasDuty: @escaping @Sendable () -> Bool, log: GatewayLog,
        now: @escaping @Sendable () -> Date
    ) {
        self.directory = directory
        self.registry = registry
        self.data = data
        self.sessions = sessions
        self.freed = freed
        self.hasDuty = hasDuty
        self.log = log
        self.now = now
        ticker = Ticker(queue: queue, everySeconds: 1)
    }

    func start() {
        ticker.start { [weak self] in self?.work() }
    }

    /// Begins nothing any more. What has begun ends once the stores are closed; see ``wait()``.
    func stop() { ticker.stop() }

    func wait() { queue.sync {} }

    /// Does what is due, and returns when it is done.
    func finish() { queue.sync { work() } }

    private func work() {
        guard hasDuty() else { return }
        do throws(GatewayError) {
            for deletion in try directory.deletions() { try work(on: deletion) }
        } catch {
            log.note(.error, "app not erased", [("detail", error.reason)])
        }
    }

    private func work(on deletion: AppDeletion) throws(GatewayError) {
        let id = deletion.appID
        let milliseconds = Milliseconds(now()).count
        guard let free = deletion.freeMilliseconds else {
            // Before any row goes: without its sessions it could not be told any more.
            try registry.refresh()
            let mayHaveTokens = try sessions.perform { try $0.hasSessions(of: id) }
            let pause = mayHaveTokens ? TokenSecrets.overlapMilliseconds : Self.shortestMilliseconds
            try directory.reserve(deletedApp: id, until: milliseconds + pause)
            return try erase(id, at: milliseconds)
        }
        if deletion.erasedMilliseconds == nil { try erase(id, at: milliseconds) }
        guard milliseconds >= free else { return }
        // What was on its way when the rows went.
        for store in data { try store.erase(appID: id) }
        freed(id)
        try directory.free(deletedApp: id)
    }

    private func erase(_ id: String, at milliseconds: Int64) throws(GatewayError) {
        for store in data { try store.erase(appID: id) }
        try directory.noteErased(id, at: milliseconds)
        log.note(.info, "app erased", [("app", id)])
    }
}
