package import Foundation

/// A source of credentials for requests. There is one conformer for each authentication method.
///
/// `DeliveryEngine` asks it before each request and reports how the server responded. The engine makes one
/// call at a time and waits for it. So a source that needs time returns `pending` and posts the result
/// later.
package protocol CredentialSource: Sendable {
    /// True if the source gets a new credential itself after a rejection. False if the app has to provide
    /// it.
    var isRenewing: Bool { get }

    /// The remedy for missing or rejected credentials, for the log. Nil if the source logs its own failures.
    var remedy: String? { get }

    /// Seconds by which the server's clock is ahead of the device's; 0 if nothing is known.
    var clockOffset: TimeInterval { get async }

    /// Returns whether to send a request with records of `owner`, and with which credential. `rejected` is
    /// the generation of the credential that the server rejected last. After `pending`, the source passes
    /// its result to `post`.
    func credential(
        for owner: UserKey, replacing rejected: Int?,
        post: @escaping @Sendable (@escaping CredentialAction) -> Void
    ) async -> CredentialDecision

    /// Called after the server accepted a request with this credential.
    func accepted(_ credential: Credential, of owner: UserKey) async

    /// Called after the server rejected the credential or warned about it. Returns false if the app was
    /// already notified, because the source could not get a better credential.
    func rejected(
        _ credential: Credential, of owner: UserKey, _ verdict: ServerAnswer.TokenVerdict
    ) async -> Bool

    /// Sets the server's current time.
    func noteServerTime(_ date: Date) async

    /// Tries again to get credentials despite recent failures. Called when a session begins or a flush
    /// waits.
    func resume() async

    func removeAll() async

    /// Stops waiting for pending calls.
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

/// The decision of a `CredentialSource` about a request.
package enum CredentialDecision: Sendable, Equatable {
    /// Send with this credential.
    case ready(Credential)
    /// A credential is being fetched. `CredentialUpdate.resolved` will follow.
    case pending
    /// No better credential is available. The server decides about this one, but a rejected credential is
    /// sent again only after a wait. Nil if nothing may be sent without a credential.
    case doubtful(Credential?, ServerAnswer.Explanation)
    /// Send nothing before this uptime. Nil waits for the next `CredentialUpdate`.
    case unavailable(ServerAnswer.Explanation, retryAt: TimeInterval?)
}

/// A message from a `CredentialSource` to the engine.
package enum CredentialUpdate: Sendable {
    /// The owner has a new credential.
    case changed(UserKey, generation: Int)
    /// Fetching the owner's credential has ended or timed out. Ask the source again.
    case resolved(UserKey)
    /// The owner's credential must not be sent any more. Ask the source again.
    case removed(UserKey)
    /// A failure to report to the app.
    case failed(AuthenticationFailure)
}

/// Work that the engine runs between two steps, in the order of the calls to `post`.
package typealias CredentialAction = @Sendable () async -> [CredentialUpdate]
