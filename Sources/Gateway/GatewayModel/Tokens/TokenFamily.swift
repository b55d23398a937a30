internal import CountersignCore

/// A signed-in device or program of a user: a family of refresh tokens with one active token.
public struct TokenFamily: Sendable, Identifiable {
    /// The id of the token family in commands and in the claim `sid`.
    public let id: String
    /// The app that the tokens are for.
    public let appID: String
    /// The subject of the tokens: a user id, or `device:` and the id of a device that registered itself.
    public let subject: String
    /// The only client that may use the token family; nil for a device, which has no client credentials.
    public let clientID: String?
    /// The scopes of the tokens, separated by spaces (RFC 6749, section 3.3).
    public let scope: String
    /// The number of refresh token exchanges.
    public let generation: Int
    /// Creation time, in milliseconds since 1970.
    public let createdMilliseconds: Int64
    /// Time of the last refresh token exchange, initially of the creation, in milliseconds since 1970.
    public let usedMilliseconds: Int64
    /// Expiry if unused, in milliseconds since 1970.
    public let expiresMilliseconds: Int64
    /// Start of the maximum lifetime, in milliseconds since 1970.
    package let lifetimeFromMilliseconds: Int64
    /// Time of the revocation, in milliseconds since 1970; nil when not revoked.
    public let revokedMilliseconds: Int64?
    /// The reason of the revocation; nil when not revoked.
    public let revocation: Revocation?

    package init(
        id: String, appID: String, subject: String, clientID: String?, scope: String, generation: Int,
        createdMilliseconds: Int64, usedMilliseconds: Int64, expiresMilliseconds: Int64,
        lifetimeFromMilliseconds: Int64, revokedMilliseconds: Int64?, revocation: Revocation?
    ) {
        self.id = id
        self.appID = appID
        self.subject = subject
        self.clientID = clientID
        self.scope = scope
        self.generation = generation
        self.createdMilliseconds = createdMilliseconds
        self.usedMilliseconds = usedMilliseconds
        self.expiresMilliseconds = expiresMilliseconds
        self.lifetimeFromMilliseconds = lifetimeFromMilliseconds
        self.revokedMilliseconds = revokedMilliseconds
        self.revocation = revocation
    }

    /// The reason of a revocation.
    public enum Revocation: String, Sendable {
        /// Revoked by an operator.
        case `operator`
        /// Revoked by its client at `/oauth/revoke`.
        case client
        /// A replaced refresh token was presented, so the token may have been stolen.
        case reuse
    }

    /// Whether the refresh token can be exchanged.
    ///
    /// - Parameter milliseconds: The current time, in milliseconds since 1970.
    /// - Returns: False when the token family has expired or was revoked.
    public func isActive(atMilliseconds milliseconds: Int64) -> Bool {
        revokedMilliseconds == nil && milliseconds < expiresMilliseconds
    }
}
