internal import CountersignCore

/// What somebody may do in the admin API.
package enum AdminRole: String, Sendable, TextEnum, Comparable {
    /// Reads everything that is not secret.
    case viewer
    /// Changes apps, keys, enforcement, policy and messages besides.
    case `operator`
    /// Changes users, tokens and backups besides.
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
