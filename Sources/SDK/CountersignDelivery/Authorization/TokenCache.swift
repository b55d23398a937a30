/// The newest token of each user.
package struct TokenCache {
    package struct Entry: Equatable {
        package let token: SignedToken
        /// Increases with each new token of any user, to recognize late responses about an older token.
        package let generation: Int
    }

    private var entries: [UserKey: Entry] = [:]
    private var lastGeneration = 0

    package init() {}

    package subscript(user: UserKey) -> Entry? { entries[user] }

    /// Returns the new generation, or nil if the user already had this token.
    package mutating func set(_ token: SignedToken, for user: UserKey) -> Int? {
        if entries[user]?.token == token { return nil }
        lastGeneration += 1
        entries[user] = Entry(token: token, generation: lastGeneration)
        return lastGeneration
    }

    package mutating func remove(_ user: UserKey) {
        entries[user] = nil
    }

    package mutating func removeAll() {
        entries = [:]
    }
}
