internal import CountersignCore

package enum AdminRole: String, Sendable, TextEnum, Comparable {
    /// Reads counts, codes, settings and events, with pseudonyms instead of users and without the events' content.
    case viewer
    /// Also reads events and users as stored, and changes apps and their settings.
    case `operator`
    /// Also deletes apps, creates streams, and manages dashboard users, API tokens, signing keys and backups.
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
