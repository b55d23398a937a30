internal import Foundation

/// A pair of tokens with its history: the complete state stored between two runs.
struct TokenPair: Codable, Equatable, Sendable {
    var accessToken: String?
    var refreshToken: String?
    /// The expiry of the access token by the server's clock, in seconds since 1970; nil if unknown.
    var expiresAt: TimeInterval?
    /// The lifetime of the access token, in seconds. Limits its use when the device clock is wrong.
    var lifetime: TimeInterval?
    /// Seconds by which the server's clock was ahead of the device's when the token was received.
    var clockOffset: TimeInterval = 0
    /// The error code with which the server rejected the refresh token; nil while the token is valid.
    var deathCode: String?
    /// Fingerprints of this pair's tokens and of the pairs before it, from which it was refreshed; oldest first.
    var known: [UInt64] = []

    private static let maximumKnown = 256

    func contains(_ token: String) -> Bool { known.contains(Self.fingerprint(token)) }

    mutating func addFingerprints(of tokens: [String?]) {
        for token in tokens.compactMap(\.self) where !contains(token) {
            known.append(Self.fingerprint(token))
        }
        known.removeFirst(max(0, known.count - Self.maximumKnown))
    }

    /// A hash that need not be secure, because the file has the tokens themselves.
    private static func fingerprint(_ token: String) -> UInt64 { DataFolder.hash(token.utf8) }
}

extension TokenPair: CustomStringConvertible, CustomReflectable {
    /// Without the values of the tokens.
    var description: String {
        "TokenPair(accessToken: \(accessToken == nil ? "none" : "redacted"), "
            + "refreshToken: \(refreshToken == nil ? "none" : "redacted"), deathCode: \(deathCode ?? "none"))"
    }

    var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension TokenPair {
    /// Returns the pair from the app. Nil if it has no tokens, or only tokens in `present.known`, which are not newer.
    static func adopting(
        _ configuration: AuthorizationConfiguration, over present: TokenPair?, isSparse: Bool, now: Date,
        clockOffset: TimeInterval
    ) -> TokenPair? {
        let access = configuration.accessToken.flatMap { $0.isEmpty ? nil : $0 }
        let refresh = configuration.refreshToken.flatMap { $0.isEmpty ? nil : $0 }
        guard access != nil || refresh != nil else { return nil }
        var next = TokenPair(accessToken: access, refreshToken: refresh, clockOffset: clockOffset)
        if let present {
            let hasRefresh = refresh.map(present.contains)
            if access.map(present.contains) ?? true, hasRefresh ?? true { return nil }
            if access == nil && isSparse { next.accessToken = present.accessToken }
            if hasRefresh ?? (isSparse && present.deathCode == nil) {
                // The refresh token is known or missing: do not return to a refresh token that was replaced.
                next.refreshToken = present.refreshToken
                next.known = present.known
            }
        }
        switch access == nil ? nil : Expiry(number: configuration.expires, unit: configuration.expiresUnit) {
        case .lifetime(let seconds): next.expire(after: seconds, at: now)
        // An expired token is refreshed immediately.
        case .instant(let instant): next.expire(after: max(0, instant - now.timeIntervalSince1970), at: now)
        case nil: break
        }
        next.addFingerprints(of: [access, refresh, next.accessToken, next.refreshToken])
        return next
    }

    func rotated(
        to grant: TokenFinder.Grant, at now: Date, clockOffset: TimeInterval
    ) -> TokenPair {
        var next = self
        next.accessToken = grant.accessToken
        next.refreshToken = grant.refreshToken ?? refreshToken
        next.clockOffset = clockOffset
        next.deathCode = nil
        next.expire(after: grant.expiry?.lifetime(at: now) ?? Self.hint(grant.accessToken, at: now), at: now)
        next.addFingerprints(of: [grant.accessToken, grant.refreshToken])
        return next
    }

    private mutating func expire(after lifetime: TimeInterval?, at now: Date) {
        self.lifetime = lifetime
        expiresAt = lifetime.map { now.timeIntervalSince1970 + $0 }
    }

    /// The lifetime by `exp` of a JWT, for a server that sends no expiry.
    private static func hint(_ token: String, at now: Date) -> TimeInterval? {
        SignedToken(token)?.expiresAt.flatMap { Expiry(number: $0, unit: .epochSeconds)?.lifetime(at: now) }
    }

    /// Returns the seconds until the access token expires; nil if unknown.
    func remaining(now: Date) -> TimeInterval? {
        guard let expiresAt, let lifetime else { return nil }
        return min(lifetime, expiresAt - now.timeIntervalSince1970 - clockOffset)
    }
}
