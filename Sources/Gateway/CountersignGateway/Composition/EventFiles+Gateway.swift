internal import Foundation
internal import GatewayDelivery
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

extension EventFiles {
    /// Nil if no event files are configured. Results are logged.
    convenience init?(
        _ configuration: GatewayConfiguration, storage: any Storage, directory: AppDirectory,
        membership: Membership, log: GatewayLog, now: @escaping @Sendable () -> Date
    ) throws(GatewayError) {
        guard let folder = configuration.eventFilesFolder else { return nil }
        self.init(
            folder: folder, log: storage.log, apps: { try directory.apps().map(\.id) },
            // Events are rejected below the disk floor, so files stop at twice the floor in case they share
            // the disk.
            freeBytes: 2 * configuration.diskFloorBytes, hasDuty: { membership.has(.eventFiles) }, now: now
        ) { report in
            switch report {
            case .failed(let detail): log.note(.error, "event files not written", [("detail", detail)])
            case .recovered: log.note(.info, "event files written again")
            case .missed(let app, let file):
                log.note(.error, "event files miss events", [("app", app), ("file", file)])
            }
        }
    }
}
