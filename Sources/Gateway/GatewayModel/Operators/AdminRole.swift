internal import CountersignCore

package enum AdminRole: String, Sendable, TextEnum, Comparable {
    /// Reads everything except secrets.
    case viewer
    /// Also changes apps, keys, enforcement, policy and messages.
    case `operator`
    /// Also changes users, tokens and backups.
    case owner

    package static func < (left: AdminRole, right: AdminRole) -> Bool { left.rank < right.rank }

    private var rank: Int {
        switch self {
        case .viewer: 0
        case .operator: 1
        case .owner: 2
        }
    }
}
