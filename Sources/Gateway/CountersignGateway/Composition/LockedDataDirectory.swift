internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

struct LockedDataDirectory: Sendable {
    let storage: any Storage
    /// Nil with a database server, which has its own backup tools.
    let backups: BackupSchedule?
    private let lock: Lock<DataDirectoryLock?>
    private let signal: ChangeSignal?

    init(
        _ configuration: GatewayConfiguration, log: GatewayLog, now: @escaping @Sendable () -> Date
    ) throws(GatewayError) {
        guard configuration.database == nil else {
            storage = try StorageLocation(configuration).open(now: now)
            backups = nil
            lock = Lock(nil)
            signal = nil
            return
        }
        let directory = try DataDirectory(path: configuration.dataDirectory)
        try UnfinishedCopy.check(directory.path)
        backups = BackupSchedule(
            dataDirectory: directory.path, rules: configuration.backups,
            floorBytes: configuration.diskFloorBytes, now: now
        ) { result in
            switch result {
            case .success(let backup): log.note(.info, "backup made", [("path", backup.path)])
            case .failure(let error): log.note(.error, "backup failed", [("detail", error.reason)])
            }
        }
        lock = Lock(try directory.lock())
        // Marks earlier requests as loaded, so it comes before all reads of the data.
        signal = try ChangeSignal(in: directory)
        storage = SQLiteStorage(folder: directory, now: now)
    }

    /// Lets commands wait until `load` has loaded their changes. Nil with PostgreSQL, which notifies its
    /// gateways.
    func changes(load: @escaping @Sendable () throws -> Void) -> LocalChanges? {
        signal.map { LocalChanges($0, load: load) }
    }

    func note(_ gateway: RunningGateway) {
        lock.withLock { $0 }?.note(gateway)
    }

    func unlock() {
        lock.withLock { $0 = nil }
    }
}
