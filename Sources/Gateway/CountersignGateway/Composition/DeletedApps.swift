internal import CountersignCore
internal import Dispatch
internal import Foundation
internal import GatewayIngest
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

/// Deletes the data of deleted apps. Their ids become available afterwards. The remaining work is stored in
/// the app directory, so it continues after a restart.
final class DeletedApps: Sendable {
    /// The minimum time for which an id stays reserved: requests admitted before the deletion may still be stored.
    private static let shortestMilliseconds: Int64 = 60_000

    private let directory: AppDirectory
    private let registry: AppRegistry
    private let data: [any AppData]
    private let families: TokenFamilyStore
    private let freed: @Sendable (String) -> Void
    private let hasDuty: @Sendable () -> Bool
    private let log: GatewayLog
    private let now: @Sendable () -> Date
    private let queue = DispatchQueue(label: "deleted apps", qos: .utility)
    private let ticker: Ticker

    /// `data` is everything that stores data of apps, including `families`. `hasDuty` is false while another
    /// gateway deletes apps. `freed` is called when an id is about to become available again.
    init(
        directory: AppDirectory, registry: AppRegistry, data: [any AppData], families: TokenFamilyStore,
        freed: @escaping @Sendable (String) -> Void, hasDuty: @escaping @Sendable () -> Bool, log: GatewayLog,
        now: @escaping @Sendable () -> Date
    ) {
        self.directory = directory
        self.registry = registry
        self.data = data
        self.families = families
        self.freed = freed
        self.hasDuty = hasDuty
        self.log = log
        self.now = now
        ticker = Ticker(queue: queue, everySeconds: 1)
    }

    func start() {
        ticker.start { [weak self] in self?.work() }
    }

    /// Starts no further work. Running work ends once the stores are closed; see ``wait()``.
    func stop() { ticker.stop() }

    func wait() { queue.sync {} }

    func finish() { queue.sync { work() } }

    private func work() {
        guard hasDuty() else { return }
        do throws(GatewayError) {
            for deletion in try directory.deletions() {
                // Continues after an error, because the next deletion may succeed.
                do throws(GatewayError) { try work(on: deletion) } catch { note(error, deletion.appID) }
            }
        } catch {
            note(error, nil)
        }
    }

    private func note(_ error: GatewayError, _ appID: String?) {
        log.note(.error, "app not erased", [("app", appID ?? "-"), ("detail", error.reason)])
    }

    private func work(on deletion: AppDeletion) throws(GatewayError) {
        let id = deletion.appID
        let milliseconds = Milliseconds(now()).count
        guard let free = deletion.freeMilliseconds else {
            // Checked before `erase` deletes the token families. An app that had any may have valid tokens.
            try registry.refresh()
            let mayHaveTokens = try families.perform { try $0.hasFamilies(of: id) }
            let pause = mayHaveTokens ? TokenSecrets.overlapMilliseconds : Self.shortestMilliseconds
            try directory.reserve(deletedApp: id, until: milliseconds + pause)
            return try erase(id, at: milliseconds)
        }
        if deletion.erasedMilliseconds == nil { try erase(id, at: milliseconds) }
        guard milliseconds >= free else { return }
        // Deletes data that was written after the first deletion.
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
