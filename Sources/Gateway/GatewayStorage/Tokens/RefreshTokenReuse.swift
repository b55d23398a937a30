internal import GatewayModel

/// The meaning of a presented refresh token of an active token family.
///
/// A client may lose the response to an exchange, or refresh in two processes at once. So a request with the parent of
/// the active token gets the active token again, within the reuse window and until its exchange. Any other use of a
/// replaced token indicates theft (RFC 9700, section 4.14.2; `docs/adr/0015-reuse-of-refresh-tokens.md`).
enum RefreshTokenReuse {
    /// The active token, which is exchanged now.
    case active
    /// The parent of the active token. The associated value is the active token, which is returned again.
    case repeated(RefreshToken)
    /// A replaced token. The token family must be revoked.
    case stolen
    /// A token that the token family never had.
    case unknown

    /// `presented` and `active` are generations. `stored` is the row of the presented token. `child` is the active
    /// token if it is a child of the presented token. `window` is in milliseconds.
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
