internal import GatewayModel

/// The meaning of a presented refresh token of an active session.
///
/// The client may lose the response to an exchange, or two of its processes may refresh at the same time. So
/// the parent of the active token returns the active token again, until that one is exchanged or the reuse
/// window is over. The use of any other replaced token indicates theft (RFC 9700, section 4.14.2; see
/// `docs/adr/0015-reuse-of-refresh-tokens.md`).
enum RefreshTokenReuse {
    /// The active token, which is exchanged now.
    case active
    /// The parent of the active token, which is returned again.
    case repeated(RefreshToken)
    /// A replaced token. The session must be revoked.
    case stolen
    /// A token that the session never had.
    case unknown

    /// - Parameters:
    ///   - presented: The generation of the presented token.
    ///   - active: The generation of the session's active token.
    ///   - stored: The stored row of the presented token; nil without one.
    ///   - child: The active token if it is a child of the presented one.
    ///   - window: The reuse window in milliseconds.
    ///   - now: Milliseconds since 1970.
    init(
        presented: Int, active: Int, stored: StoredRefreshToken?, child: RefreshToken?, window: Int64,
        at now: Int64
    ) {
        if presented > active || presented == active && stored == nil {
            self = .unknown
        } else if presented == active {
            self = .active
        } else if presented == active - 1, let child, let exchanged = stored?.exchangedMilliseconds,
            !DueTime.hasCome(exchanged + window, at: now, within: window)
        {
            self = .repeated(child)
        } else {
            self = .stolen
        }
    }
}

/// A row of `refresh_token`.
struct StoredRefreshToken {
    let hash: [UInt8]
    let nonce: [UInt8]?
    /// Milliseconds since 1970; nil for the active token.
    let exchangedMilliseconds: Int64?
}
