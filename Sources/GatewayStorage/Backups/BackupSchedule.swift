internal import CountersignCore
package import Foundation
package import GatewayModel

/// Makes a backup every so many hours, counted from the newest one that is there, and deletes the oldest. One that was made
/// while the clock was ahead counts as the oldest.
package final class BackupSchedule: Sendable {
    private let dataDirectory: String
    private let rules: BackupRules
    private let now: @Sendable () -> Date
    private let report: @Sendable (Result<Backup, GatewayError>) -> Void
    private let ticker = Ticker(queue: DispatchQueue(label: "backups"), everySeconds: 60)

    package init(
        dataDirectory: String, rules: BackupRules, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (Result<Backup, GatewayError>) -> Void
    ) {
        self.dataDirectory = dataDirectory
        self.rules = rules
        self.now = now
        self.report = report
    }

    package var folder: String { rules.folder ?? dataDirectory + "/backups" }

    /// Looks every minute, on a thread of its own: a copy of a large database takes a while.
    package func start() {
        guard rules.hours > 0 else { return }
        ticker.start { [weak self] in self?.makeIfDue() }
    }

    package func stop() {
        ticker.stop()
    }

    /// Makes one when the newest is old enough.
    func makeIfDue() {
        let now = now()
        let milliseconds = Milliseconds(now).count
        let newest = Backup.all(in: folder, at: milliseconds).first?.createdMilliseconds ?? 0
        let due = newest + Int64(rules.hours) * 3_600_000
        guard DueTime.hasCome(due, at: milliseconds, within: due - newest) else { return }
        do throws(GatewayError) {
            let backup = try Backup.create(of: dataDirectory, in: folder, now: now)
            try Backup.prune(folder, keeping: rules.keep, at: milliseconds)
            report(.success(backup))
        } catch {
            report(.failure(error))
        }
    }
}
