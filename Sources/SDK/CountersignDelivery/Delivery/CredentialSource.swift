package import Foundation

/// Where the credentials of requests come from: one conformer for each way in which an app is trusted.
///
/// `DeliveryEngine` asks before each request, tells what the server made of the answer, and knows nothing else of tokens. It
/// makes one call at a time and waits for none but these, so a source that has to ask somebody answers `pending` and posts
/// what came of that.
package protocol CredentialSource: Sendable {
    /// True if the source looks for another credential on its own when a server has refused one; false if it waits until the
    /// app hands one over.
    var isRenewing: Bool { get }

    /// The remedy for missing or rejected credentials, for the log. Nil if the source logs its own failures.
    var remedy: String? { get }

    /// Seconds by which the server's clock is ahead of the device's; 0 if nothing is known.
    var clockOffset: TimeInterval { get async }

    /// Whether to send a request with records of `owner`, and under which credential: another one than that of the generation
    /// that the server has `rejected` last. After `pending`, `post` takes what is to be done in the engine's turn.
    func credential(
        for owner: UserKey, replacing rejected: Int?,
        post: @escaping @Sendable (@escaping CredentialWork) -> Void
    ) async -> CredentialDecision

    /// A server has taken a request under this credential.
    func accepted(_ credential: Credential, of owner: UserKey) async

    /// A server has refused the credential, or has criticized it. False if the app was told already, when the source could
    /// not get a better one.
    func refused(
        _ credential: Credential, of owner: UserKey, _ verdict: ServerAnswer.TokenVerdict
    ) async -> Bool

    /// What time it is at the server.
    func noteServerTime(_ date: Date) async

    /// Looks for credentials again even if that has just failed: a session begins, or somebody waits for a flush.
    func resume() async

    /// Forgets all credentials.
    func forgetAll() async

    /// Waits for nobody any longer.
    func stop() async
}

extension CredentialSource {
    package func accepted(_ credential: Credential, of owner: UserKey) async {}
    package func refused(
        _ credential: Credential, of owner: UserKey, _ verdict: ServerAnswer.TokenVerdict
    ) async -> Bool { true }
    package func resume() async {}
    package func stop() async {}
}

/// What a `CredentialSource` answers.
package enum CredentialDecision: Sendable, Equatable {
    /// Send under this one.
    case ready(Credential)
    /// Somebody is being asked. `CredentialNews.sought` is to follow.
    case pending
    /// There is none better than this one now. The server is the judge of it, but not over and over of one that it has refused.
    /// Nil: nothing may be sent without one, and there may be one later.
    case doubtful(Credential?, ServerAnswer.Explanation)
    /// Send nothing before this uptime, or if that is nil, before there is news.
    case unavailable(ServerAnswer.Explanation, retryAt: TimeInterval?)
}

/// What a `CredentialSource` tells the engine.
package enum CredentialNews: Sendable {
    /// There is another credential for this owner's records.
    case changed(UserKey, generation: Int)
    /// Whoever was asked for this owner's credential has answered, or took too long: ask the source again.
    case sought(UserKey)
    /// The credential for this owner's records is to be sent no more: ask the source again.
    case forgotten(UserKey)
    /// Something to tell the app.
    case failed(AuthenticationFailure)
}

/// Something that is done between two steps of the engine, in the order in which it was posted.
package typealias CredentialWork = @Sendable () async -> [CredentialNews]
