internal import CountersignJOSE

/// An app as requests are judged by it: one consistent set of keys, policy and enforcement.
final class AdmittedApp: Sendable {
    let id: String
    let enforcement: Enforcement
    let verifier: TokenVerifier
    /// What it is to clients of the Bloomreach dialect.
    let project: Project

    init(_ app: App, project: Project, cache: VerifiedTokenCache) {
        self.project = project
        id = app.id
        enforcement = app.enforcement
        verifier = TokenVerifier(
            keys: KeyRing(entries: app.keys.map { KeyRing.Entry(id: $0.id, text: $0.text) }),
            policy: app.policy, cache: cache)
    }
}
