internal import CountersignTransport
internal import Foundation

/// The credentials of Bloomreach projects. Each project's records are sent with its newest API key, including records
/// of an earlier run for a project that the app no longer uses.
actor ProjectCredentialSource: CredentialSource {
    nonisolated var isRenewing: Bool { false }
    nonisolated var remedy: String? { "check the project's token, its apiKey and the key's permissions" }

    private let stored: StoredTokens
    private let clock: any ClientClock
    private var keys = TokenCache()
    private var serverClock = ServerClock()

    init(stored: StoredTokens, clock: any ClientClock) {
        self.stored = stored
        self.clock = clock
    }

    func take(_ key: SignedToken, for project: UserKey) async -> [CredentialUpdate] {
        guard let token = project.userID, let generation = keys.set(key, for: project) else { return [] }
        await stored.save(key, of: token)
        return [.changed(project, generation: generation)]
    }

    func credential(
        for project: UserKey, replacing rejected: Int?,
        post: @escaping @Sendable (@escaping CredentialAction) -> Void
    ) async -> CredentialDecision {
        // Another process may have stored a newer key than the rejected one.
        if let token = project.userID, keys[project] == nil || keys[project]?.generation == rejected,
            let text = await stored.text(of: token), let key = text.flatMap(SignedToken.accessToken)
        {
            _ = keys.set(key, for: project)
        }
        let entry = keys[project]
        return .ready(Credential(.scheme("Token"), token: entry?.token, generation: entry?.generation ?? 0))
    }

    func noteServerTime(_ date: Date) {
        serverClock.learn(date, now: clock.now, uptime: clock.uptime)
    }

    var clockOffset: TimeInterval { serverClock.offset(now: clock.now, uptime: clock.uptime) }

    func removeAll() async {
        keys.removeAll()
        await stored.removeAll()
    }
}
