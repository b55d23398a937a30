internal import CountersignCore

/// Maps pseudonyms to users, for the app of the last query. A pseudonym can be resolved only by computing the
/// pseudonyms of all users. Each request computes a limited number, so that it does not block others for long.
final class PseudonymIndex: Sendable {
    private struct State {
        var appID = ""
        var users: BytewiseDictionary<String> = [:]
        var last = ""
        /// When the search reached the last user, in milliseconds since 1970; nil while users remain.
        var endedMilliseconds: Int64?
    }

    /// The maximum number of pseudonyms computed for a request, in about a twentieth of a second.
    static let mostAtOnce = 10_000
    static let mostUsers = 100_000
    /// The interval between searches for new users, in milliseconds.
    static let pause: Int64 = 10_000

    private let state = Lock(State())

    /// Returns the id of the user with this pseudonym, or nil if a search in the last ten seconds has not found it.
    /// Throws 503 while users remain to be processed and 422 if there are too many.
    func user(
        _ pseudonym: String, _ pseudonyms: Pseudonyms, of appID: String, at milliseconds: Int64,
        among candidates: (_ last: String, _ isEnough: (String) -> Bool) throws -> Void
    ) throws -> String? {
        var index = state.withLock { $0 }
        if index.appID != appID { index = State(appID: appID) }
        if let known = index.users[pseudonym] { return known }
        if let ended = index.endedMilliseconds {
            guard abs(milliseconds - ended) >= Self.pause else { return nil }
            index.last = ""
            index.endedMilliseconds = nil
        }
        var scanned = 0
        try candidates(index.last) { id in
            scanned += 1
            index.last = id
            index.users[pseudonyms.user(id)] = id
            return scanned >= Self.mostAtOnce || index.users.count >= Self.mostUsers
        }
        let isFull = index.users.count >= Self.mostUsers
        if scanned < Self.mostAtOnce, !isFull { index.endedMilliseconds = milliseconds }
        state.withLock { [index] in $0 = index }
        if let found = index.users[pseudonym] { return found }
        if isFull {
            throw AdminProblem.invalidParameter(
                "user", "is a pseudonym, and the app has too many users to search for it; give the user id")
        }
        guard index.endedMilliseconds == nil else { return nil }
        var problem = AdminProblem(503, "busy", "the users are still being searched; try again")
        problem.retryAfterSeconds = 1
        throw problem
    }
}
