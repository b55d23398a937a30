internal import CountersignCore
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

/// The data directory, which one gateway alone holds, and its backups.
struct LockedDataDirectory: Sendable {
    let storage: SQLiteStorage
    let backups: BackupSchedule
    private let lock: Lock<DataDirectoryLock?>

    init(_ configuration: GatewayConfiguration, log: GatewayLog) throws(GatewayError) {
        let directory = try DataDirectory(path: configuration.dataDirectory)
        backups = BackupSchedule(dataDirectory: directory.path, rules: configuration.backups) { result in
            switch result {
            case .success(let backup): log.note(.info, "backup made", [("path", backup.path)])
            case .failure(let error): log.note(.error, "backup failed", [("detail", error.reason)])
            }
        }
        lock = Lock(try directory.lock())
        storage = SQLiteStorage(folder: directory)
    }

    /// Writes down where the gateway is, for commands on the same machine.
    func note(url: String, adminURL: String) {
        lock.withLock { $0 }?.note(url: url, adminURL: adminURL)
    }

    /// Lets another gateway have it.
    func unlock() {
        lock.withLock { $0 = nil }
    }
}
