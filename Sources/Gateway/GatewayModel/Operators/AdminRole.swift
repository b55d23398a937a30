internal import CountersignCore

package enum AdminRole: String, Sendable, TextEnum, Comparable {
    /// Reads counts, codes and settings, with pseudonyms instead of users.
    case viewer
    /// Also reads events and users as stored, and changes apps and their settings.
    case `operator`
    /// Also deletes apps, changes dashboard users, tokens and signing keys, and makes backups.
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
