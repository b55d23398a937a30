internal import CountersignCore

/// Whom pseudonyms stand for, of the app that was asked about last.
///
/// Nothing leads from a pseudonym to its user but to go through the users. That is done piece by piece, so that no request
/// to the admin API holds up the others for long, and what was seen is kept.
final class PseudonymIndex: Sendable {
    private struct State {
        var appID = ""
        var users: BytewiseDictionary<String> = [:]
        /// The last user that was looked at.
        var last = ""
        /// When the last user of all was looked at, in milliseconds since 1970; nil while there are more.
        var endedMilliseconds: Int64?
    }

    /// About a twentieth of a second.
    static let mostAtOnce = 10_000
    static let mostUsers = 100_000
    /// After which new users are looked for, in milliseconds.
    static let pause: Int64 = 10_000

    private let state = Lock(State())

    /// The user whom a pseudonym stands for. Returns the user's id; nil when it is nobody's, as of the last ten
    /// seconds. Throws 503 while there are more users to look at, 422 when they are too many.
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
        var looked = 0
        try candidates(index.last) { id in
            looked += 1
            index.last = id
            index.users[pseudonyms.user(id)] = id
            return looked >= Self.mostAtOnce || index.users.count >= Self.mostUsers
        }
        let isFull = index.users.count >= Self.mostUsers
        if looked < Self.mostAtOnce, !isFull { index.endedMilliseconds = milliseconds }
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
