internal import Foundation

/// A pair of tokens, where it comes from, and what became of it: all that is kept between two runs.
struct TokenPair: Codable, Equatable, Sendable {
    var accessToken: String?
    var refreshToken: String?
    /// The server's clock when the access token expires, in seconds since 1970; nil if that is not known.
    var expiresAt: TimeInterval?
    /// Seconds that the access token is valid for in all, and never longer, whatever the device clock says.
    var lifetime: TimeInterval?
    /// Seconds by which the server's clock was ahead of the device's when the token came.
    var clockOffset: TimeInterval = 0
    /// Why the refresh token is dead; nil if it is not, as far as is known.
    var deathCode: String?
    /// Fingerprints of all tokens of the chain, the present ones included, oldest first.
    var known: [UInt64] = []

    /// Older tokens of a chain than this are forgotten.
    private static let maximumKnown = 256

    /// Whether a token belongs or belonged to this chain.
    func knows(_ token: String) -> Bool { known.contains(Self.fingerprint(token)) }

    mutating func remember(_ tokens: [String?]) {
        for token in tokens.compactMap(\.self) where !knows(token) { known.append(Self.fingerprint(token)) }
        known.removeFirst(max(0, known.count - Self.maximumKnown))
    }

    /// FNV-1a, which tells tokens apart; it keeps nothing secret, and the file holds the tokens themselves.
    private static func fingerprint(_ token: String) -> UInt64 {
        token.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
}

extension TokenPair: CustomStringConvertible, CustomReflectable {
    /// Which tokens there are, never the tokens.
    var description: String {
        "TokenPair(accessToken: \(accessToken == nil ? "none" : "redacted"), "
            + "refreshToken: \(refreshToken == nil ? "none" : "redacted"), deathCode: \(deathCode ?? "none"))"
    }

    var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension TokenPair {
    /// What the app hands over, unless it is of the chain that there is already: then that is as new or
    /// newer. Returns the pair to go on with; nil to go on with what there is.
    static func adopting(
        _ configuration: AuthorizationConfiguration, over present: TokenPair?, isSparse: Bool, now: Date,
        clockOffset: TimeInterval
    ) -> TokenPair? {
        let access = configuration.accessToken.flatMap { $0.isEmpty ? nil : $0 }
        let refresh = configuration.refreshToken.flatMap { $0.isEmpty ? nil : $0 }
        guard access != nil || refresh != nil else { return nil }
        var next = TokenPair(clockOffset: clockOffset)
        next.accessToken = access
        next.refreshToken = refresh
        if let present {
            let knowsAccess = access.map(present.knows) ?? true
            let knowsRefresh = refresh.map(present.knows) ?? true
            if knowsAccess && knowsRefresh { return nil }
            if access == nil && isSparse { next.accessToken = present.accessToken }
            if let refresh, present.knows(refresh) {
                // The same chain: never back to a refresh token that was rotated away.
                next.refreshToken = present.refreshToken
                next.known = present.known
            } else if refresh == nil && isSparse && present.deathCode == nil {
                next.refreshToken = present.refreshToken
                next.known = present.known
            }
        }
        switch access == nil ? nil : Expiry(number: configuration.expires, unit: configuration.expiresUnit) {
        case .lifetime(let seconds): next.expire(after: seconds, at: now)
        // One that has passed already is refreshed at once.
        case .instant(let instant): next.expire(after: max(0, instant - now.timeIntervalSince1970), at: now)
        case nil: break
        }
        next.remember([access, refresh, next.accessToken, next.refreshToken])
        return next
    }

    /// The pair after a refresh.
    func rotated(
        to grant: TokenFinder.Grant, at now: Date, clockOffset: TimeInterval
    ) -> TokenPair {
        var next = self
        next.accessToken = grant.accessToken
        next.refreshToken = grant.refreshToken ?? refreshToken
        next.clockOffset = clockOffset
        next.deathCode = nil
        next.expire(after: grant.expiry?.lifetime(at: now) ?? Self.hint(grant.accessToken, at: now), at: now)
        next.remember([grant.accessToken, grant.refreshToken])
        return next
    }

    private mutating func expire(after lifetime: TimeInterval?, at now: Date) {
        self.lifetime = lifetime
        expiresAt = lifetime.map { now.timeIntervalSince1970 + $0 }
    }

    /// What a token that is a JWT says of itself, where the server says nothing.
    private static func hint(_ token: String, at now: Date) -> TimeInterval? {
        SignedToken(token)?.expiresAt.flatMap { Expiry(number: $0, unit: .epochSeconds)?.lifetime(at: now) }
    }

    /// Seconds that the access token is good for, after a restart; nil if that is not known.
    func remaining(now: Date) -> TimeInterval? {
        guard let expiresAt, let lifetime else { return nil }
        return min(lifetime, expiresAt - now.timeIntervalSince1970 - clockOffset)
    }
}
