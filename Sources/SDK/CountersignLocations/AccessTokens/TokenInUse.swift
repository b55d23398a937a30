internal import Foundation

/// The pair of tokens in use, and the state of its access token.
struct TokenInUse {
    enum State: Equatable {
        case none
        /// The pair stored at the start, which the app has not confirmed yet.
        case dormant(TokenPair)
        /// `isOnDisk` is true if the store has this pair, as far as this process knows.
        case present(TokenPair, isOnDisk: Bool)
    }

    private(set) var state = State.none
    /// Uptimes of the planned refresh and of the expiry; nil if the lifetime is unknown.
    private var expiry: (refreshAt: TimeInterval, expiresAt: TimeInterval)?
    /// Incremented at each change of the access token, to detect late rejections of an earlier token.
    private(set) var generation = 0
    private var issuedAt: TimeInterval = 0
    /// Whether a request has used the token or the app has passed it. Otherwise it is not refreshed without a request.
    var isUsed = false
    var isFromRefresh = false
    var wasAccepted = false

    var credential: TokenPair? {
        if case .present(let credential, _) = state { credential } else { nil }
    }

    /// The pair in use, or else the stored pair that the app has not confirmed yet.
    var known: TokenPair? {
        switch state {
        case .none: nil
        case .dormant(let credential), .present(let credential, _): credential
        }
    }

    var isOnDisk: Bool {
        if case .present(_, let isOnDisk) = state { isOnDisk } else { false }
    }

    var refreshAt: TimeInterval? { expiry?.refreshAt }

    mutating func loaded(_ stored: TokenPair?) {
        state = stored.map { .dormant($0) } ?? .none
    }

    mutating func dropDormant() {
        if case .dormant = state { state = .none }
    }

    /// If `isOnDisk` is nil, the state on disk is unchanged. Returns true if the access token has changed.
    mutating func take(
        _ credential: TokenPair, lifetime: TimeInterval?, isOnDisk: Bool? = nil,
        leeway longest: TimeInterval, share: Double, at reading: ClockReading
    ) -> Bool {
        let isAnother = credential.accessToken != self.credential?.accessToken
        if isAnother {
            generation += 1
            isUsed = false
            wasAccepted = false
        }
        state = .present(credential, isOnDisk: isOnDisk ?? (self.credential == nil || self.isOnDisk))
        issuedAt = reading.uptime
        expiry = lifetime.map { lifetime in
            let leeway = min(longest, (credential.lifetime ?? lifetime) * share)
            let lead = leeway < 1 ? 0 : leeway * (1 + reading.fraction / 2)
            return (reading.uptime + max(0, lifetime - lead), reading.uptime + lifetime)
        }
        return isAnother
    }

    /// Marks the refresh token as invalid. Returns the pair to store.
    mutating func invalidate(_ code: String) -> TokenPair? {
        guard case .present(var credential, let isOnDisk) = state else { return nil }
        credential.deathCode = code
        state = .present(credential, isOnDisk: isOnDisk)
        return credential
    }

    mutating func remove() {
        state = .none
        expiry = nil
        generation += 1
    }

    /// Whether the token has reached the planned refresh, or the last second before its expiry: servers that count
    /// whole seconds may report the expiry early.
    func hasLived(at uptime: TimeInterval) -> Bool {
        guard let expiry, uptime - issuedAt >= 1 else { return false }
        return min(expiry.refreshAt, expiry.expiresAt - 1) <= uptime
    }

    func isFresh(at uptime: TimeInterval, window: TimeInterval) -> Bool {
        isFromRefresh && !wasAccepted && uptime - issuedAt < window && !hasLived(at: uptime)
    }
}
