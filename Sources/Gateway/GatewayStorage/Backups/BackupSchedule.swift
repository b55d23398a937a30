internal import CountersignCore
package import Foundation
package import GatewayModel

/// Makes a backup at a fixed interval after the newest one, and deletes the oldest beyond `BackupRules.keep`. A backup
/// dated in the future counts as the oldest. Retries after a failure with increasing pauses.
package final class BackupSchedule: Sendable {
    /// From 5 minutes up to 4 hours.
    private static let retry = RetryPolicy(baseDelay: 300, maximumDelay: 14_400)

    private let dataDirectory: String
    private let rules: BackupRules
    private let floorBytes: Int
    private let uptime: @Sendable () -> DispatchTime
    private let failures = Lock((count: 0, until: DispatchTime(uptimeNanoseconds: 0)))
    private let now: @Sendable () -> Date
    private let report: @Sendable (Result<Backup, GatewayError>) -> Void
    private let ticker = Ticker(queue: DispatchQueue(label: "backups"), everySeconds: 60)

    package init(
        dataDirectory: String, rules: BackupRules, floorBytes: Int = 0, now: @escaping @Sendable () -> Date,
        uptime: @escaping @Sendable () -> DispatchTime = { .now() },
        report: @escaping @Sendable (Result<Backup, GatewayError>) -> Void
    ) {
        self.dataDirectory = dataDirectory
        self.rules = rules
        self.floorBytes = floorBytes
        self.uptime = uptime
        self.now = now
        self.report = report
    }

    package var folder: String { rules.folder ?? dataDirectory + "/backups" }

    /// Checks every minute whether a backup is due, on a separate queue, because copying a large database takes long.
    package func start() {
        guard rules.hours > 0 else { return }
        ticker.start { [weak self] in self?.makeIfDue() }
    }

    package func stop() {
        ticker.stop()
    }

    func makeIfDue() {
        guard uptime() >= failures.withLock({ $0.until }) else { return }
        let now = now()
        let milliseconds = Milliseconds(now).count
        let newest = Backup.all(in: folder, at: milliseconds).first?.createdMilliseconds ?? 0
        let due = newest + Int64(rules.hours) * 3_600_000
        guard DueTime.hasCome(due, at: milliseconds, within: due - newest) else { return }
        do throws(GatewayError) {
            let backup = try Backup.create(of: dataDirectory, in: folder, floorBytes: floorBytes, now: now)
            failures.withLock { $0.count = 0 }
            try Backup.prune(folder, keeping: rules.keep, at: milliseconds)
            report(.success(backup))
        } catch {
            let ended = uptime()
            failures.withLock { failures in
                failures.count += 1
                failures.until = ended + Self.retry.delay(afterFailure: failures.count, fraction: 1)
            }
            report(.failure(error))
        }
    }
}
