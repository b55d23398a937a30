internal import CountersignCore

/// One device or program of one user that is logged in: a family of refresh tokens, of which one is active.
public struct Session: Sendable, Identifiable {
    /// What the token family is called in commands and in the claim `sid`.
    public let id: String
    /// The app that its tokens are for.
    public let appID: String
    /// Whom its tokens speak for: a user id, or `device:` and the id of a device that registered itself.
    public let subject: String
    /// The client that alone may use it; nil for a device, which has nothing to prove itself by.
    public let clientID: String?
    /// What its tokens may be used for, separated by blanks (RFC 6749, section 3.3).
    public let scope: String
    /// How often its refresh token was exchanged.
    public let generation: Int
    /// Milliseconds since 1970 when it was opened.
    public let createdMilliseconds: Int64
    /// Milliseconds since 1970 when its refresh token was exchanged last.
    public let usedMilliseconds: Int64
    /// Milliseconds since 1970 from which on it is over, unless it is used before.
    public let expiresMilliseconds: Int64
    /// Milliseconds since 1970 from which on its absolute lifetime counts.
    package let lifetimeFromMilliseconds: Int64
    /// Milliseconds since 1970 when it was ended; nil when it was not.
    public let revokedMilliseconds: Int64?
    /// Who or what ended it; nil when nobody did.
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

    /// Why a token family was ended before its time.
    public enum Revocation: String, Sendable {
        /// An operator.
        case `operator`
        /// Its client, at `/oauth/revoke`.
        case client
        /// A refresh token was presented that had been replaced: somebody has a copy.
        case reuse
    }

    /// True while its refresh token can be exchanged.
    ///
    /// - Parameter milliseconds: Now, since 1970.
    /// - Returns: False when it has expired or was ended.
    public func isActive(atMilliseconds milliseconds: Int64) -> Bool {
        revokedMilliseconds == nil && milliseconds < expiresMilliseconds
    }
}
