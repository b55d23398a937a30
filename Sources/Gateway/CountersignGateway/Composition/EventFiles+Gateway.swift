internal import Foundation
internal import GatewayDelivery
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

extension EventFiles {
    /// Nil if no event files are configured. Failures and recoveries are logged.
    init?(
        _ configuration: GatewayConfiguration, _ directory: AppDirectory, membership: Membership,
        log: GatewayLog
    ) {
        guard let folder = configuration.eventFilesFolder else { return nil }
        self.init(
            directory, folder: folder,
            // Below the disk floor, the gateway rejects events. Event files may be on the disk of the events,
            // so they stop at twice the floor.
            freeBytes: 2 * configuration.diskFloorBytes, hasDuty: { membership.has(.eventFiles) },
            now: membership.sharedTime
        ) { report in
            switch report {
            case .failed(let detail): log.note(.error, "event files not written", [("detail", detail)])
            case .recovered: log.note(.info, "event files written again")
            }
        }
    }
}
