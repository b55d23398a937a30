internal import Foundation

/// The pair of tokens in use, and how it stands with its access token.
struct TokenInUse {
    enum State: Equatable {
        case none
        /// What the store had at the start, as long as the app has not said that it goes on with it.
        case dormant(TokenPair)
        /// On disk is what the store has, as far as this process knows.
        case present(TokenPair, isOnDisk: Bool)
    }

    enum Lifetime: Equatable {
        case unknown
        /// When the token is refreshed before it expires, and when it does.
        case known(refreshAt: TimeInterval, expiresAt: TimeInterval)
    }

    private(set) var state = State.none
    private var lifetime = Lifetime.unknown
    /// Counts up with each change of the access token, so that a late refusal can be told from one of the
    /// present token.
    private(set) var generation = 0
    /// When the present token came.
    private var issuedAt: TimeInterval = 0
    /// True when the present token was asked for since it came, so that an idle app does not refresh forever.
    private(set) var isUsed = false
    private var isFromRefresh = false
    private var wasAccepted = false

    var credential: TokenPair? {
        if case .present(let credential, _) = state { credential } else { nil }
    }

    /// Also one that the app has not said anything about.
    var known: TokenPair? {
        switch state {
        case .none: nil
        case .dormant(let credential), .present(let credential, _): credential
        }
    }

    var isOnDisk: Bool {
        if case .present(_, let isOnDisk) = state { isOnDisk } else { false }
    }

    var refreshAt: TimeInterval? {
        if case .known(let instant, _) = lifetime { instant } else { nil }
    }

    mutating func loaded(_ stored: TokenPair?) {
        state = stored.map { .dormant($0) } ?? .none
    }

    /// The app goes on with something else.
    mutating func dropDormant() {
        if case .dormant = state { state = .none }
    }

    /// Another pair, or the same from another place; `isOnDisk` is nil if that is as before. Returns true if
    /// the access token is another one.
    mutating func take(
        _ credential: TokenPair, lifetime: TimeInterval?, isOnDisk: Bool? = nil,
        leeway longest: TimeInterval, share: Double, uptime: TimeInterval, fraction: Double
    ) -> Bool {
        let isAnother = credential.accessToken != self.credential?.accessToken
        if isAnother {
            generation += 1
            isUsed = false
            wasAccepted = false
        }
        state = .present(credential, isOnDisk: isOnDisk ?? (self.credential == nil || self.isOnDisk))
        issuedAt = uptime
        if let lifetime {
            let leeway = min(longest, (credential.lifetime ?? lifetime) * share)
            let lead = leeway < 1 ? 0 : leeway * (1 + fraction / 2)
            self.lifetime = .known(refreshAt: uptime + max(0, lifetime - lead), expiresAt: uptime + lifetime)
        } else {
            self.lifetime = .unknown
        }
        return isAnother
    }

    /// The app's own, from now on.
    mutating func isGiven() {
        isFromRefresh = false
        isUsed = true
    }

    mutating func isRefreshed() { isFromRefresh = true }

    mutating func isWanted() { isUsed = true }

    mutating func isAccepted() { wasAccepted = true }

    /// Its refresh token no longer works. Returns the pair as it is to be kept.
    mutating func die(_ code: String) -> TokenPair? {
        guard case .present(var credential, let isOnDisk) = state else { return nil }
        credential.deathCode = code
        state = .present(credential, isOnDisk: isOnDisk)
        return credential
    }

    mutating func forget() {
        state = .none
        lifetime = .unknown
        generation += 1
    }

    /// Whether the token has been good for as long as the server said, which explains a refresh. Servers
    /// whose clock counts whole seconds may call it expired up to one second early.
    func hasLived(at uptime: TimeInterval) -> Bool {
        guard case .known(let refreshAt, let expiresAt) = lifetime, uptime - issuedAt >= 1 else {
            return false
        }
        return min(refreshAt, expiresAt - 1) <= uptime
    }

    /// Whether the token comes from a recent refresh and was not accepted yet.
    func isFresh(at uptime: TimeInterval, window: TimeInterval) -> Bool {
        isFromRefresh && !wasAccepted && uptime - issuedAt < window && !hasLived(at: uptime)
    }
}
