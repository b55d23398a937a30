/// Users whose events must not be sent now. Has a history of unblocked users, so that readers need not compare whole
/// sets.
struct BlockedUsers: Equatable, Sendable {
    fileprivate final class History: Sendable {}

    /// A point in the history of one `BlockedUsers`. Versions of different histories are not comparable.
    struct Version: Sendable {
        fileprivate let history: History
        fileprivate let unblockings: Int
    }

    private(set) var users: Set<UserKey> = []
    /// The last users that were unblocked, oldest first. `forgottenUnblockings` counts earlier unblockings.
    private var unblocked: [UserKey] = []
    private var forgottenUnblockings = 0
    private let history = History()

    init(_ users: Set<UserKey> = []) {
        self.users = users
    }

    var count: Int { users.count }

    var isEmpty: Bool { users.isEmpty }

    func contains(_ user: UserKey) -> Bool { users.contains(user) }

    mutating func insert(_ user: UserKey) { users.insert(user) }

    mutating func remove(_ user: UserKey) {
        guard users.remove(user) != nil else { return }
        // Limits the history to about the size of the set. Reading a longer one costs more than comparing sets.
        if unblocked.count > users.count + 1_000 {
            forgottenUnblockings += unblocked.count
            unblocked = []
        }
        unblocked.append(user)
    }

    var version: Version {
        Version(history: history, unblockings: forgottenUnblockings + unblocked.count)
    }

    /// The users unblocked since a version; they may be blocked again. Nil if the history begins later.
    func unblocked(since version: Version) -> ArraySlice<UserKey>? {
        let index = version.unblockings - forgottenUnblockings
        guard version.history === history, 0...unblocked.count ~= index else { return nil }
        return unblocked[index...]
    }

    static func == (left: BlockedUsers, right: BlockedUsers) -> Bool { left.users == right.users }
}
