/// The tokens of all users that have one, and which one is the newest.
package struct TokenCache {
    package struct Entry: Equatable {
        package let token: SignedToken
        /// Counts up with each new token of any user, so that a late answer can be told from one about this token.
        package let generation: Int
    }

    private var entries: [UserKey: Entry] = [:]
    private var lastGeneration = 0

    package init() {}

    package subscript(user: UserKey) -> Entry? { entries[user] }

    /// Takes a token. Returns the new generation; nil if it is the token that was there already.
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
