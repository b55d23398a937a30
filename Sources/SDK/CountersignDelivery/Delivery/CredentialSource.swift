package import Foundation

/// A source of credentials for requests, one conformer for each authentication method.
///
/// The engine waits for each call, so a source that needs time returns `pending` and posts the result later.
package protocol CredentialSource: Sendable {
    /// True if the source gets a new credential itself after a rejection; otherwise the app has to provide it.
    var isRenewing: Bool { get }

    /// The remedy for missing or rejected credentials, for the log. Nil if the source logs its own failures.
    var remedy: String? { get }

    /// Seconds by which the server's clock is ahead of the device's; 0 if nothing is known.
    var clockOffset: TimeInterval { get async }

    /// `rejected` is the generation of the credential that the server rejected last. After `pending`, the source
    /// passes its result to `post`.
    func credential(
        for owner: UserKey, replacing rejected: Int?,
        post: @escaping @Sendable (@escaping CredentialAction) -> Void
    ) async -> CredentialDecision

    func accepted(_ credential: Credential, of owner: UserKey) async

    /// Also called if the server accepts the request with a warning. Returns false if the app was already notified
    /// that there is no better credential.
    func rejected(
        _ credential: Credential, of owner: UserKey, _ verdict: ServerAnswer.TokenVerdict
    ) async -> Bool

    func noteServerTime(_ date: Date) async

    /// Tries again despite recent failures. The engine calls it when a session or a flush begins.
    func resume() async

    func removeAll() async

    func stop() async
}

extension CredentialSource {
    package func accepted(_ credential: Credential, of owner: UserKey) async {}
    package func rejected(
        _ credential: Credential, of owner: UserKey, _ verdict: ServerAnswer.TokenVerdict
    ) async -> Bool { true }
    package func resume() async {}
    package func stop() async {}
}

package enum CredentialDecision: Sendable, Equatable {
    case ready(Credential)
    /// `CredentialUpdate.resolved` will follow.
    case pending
    /// No better credential is available. The engine sends a rejected credential again only after a wait. The
    /// credential is nil if requests need a credential that the source does not have.
    case doubtful(Credential?, ServerAnswer.Explanation)
    /// The engine sends nothing of the owner until the uptime `retryAt`, a changed token, a new session or a flush.
    case unavailable(ServerAnswer.Explanation, retryAt: TimeInterval?)
}

/// A message from a `CredentialSource` to the engine.
package enum CredentialUpdate: Sendable {
    case changed(UserKey, generation: Int)
    /// Fetching has ended or timed out. Ask the source again.
    case resolved(UserKey)
    /// The credential must not be sent any more. Ask the source again.
    case removed(UserKey)
    case failed(AuthenticationFailure)
}

/// Run between two steps of the engine, in the order of the calls to `post`.
package typealias CredentialAction = @Sendable () async -> [CredentialUpdate]
