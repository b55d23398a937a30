internal import Countersign
internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

/// The backend that signs tokens for one device's users.
final class DemoTokens: Sendable {
    /// How long a token is good, in seconds. The SDK replaces one that has 5 seconds left, so each is used for two.
    static let lifetimeSeconds = 7.0

    private struct State {
        var expiry: [String: Double] = [:]
        var refreshed = 0
    }

    private let key: SigningKey
    private let state = Lock(State())

    init(key: SigningKey) {
        self.key = key
    }

    /// How many tokens were made instead of one that had expired or was refused.
    var refreshed: Int { state.withLock { $0.refreshed } }

    /// A fresh token for a user.
    func token(for userID: String, reason: TokenRequest.Reason) throws -> String {
        let now = Date().timeIntervalSince1970
        let expiresAt = (now + Self.lifetimeSeconds).rounded(.up)
        let token = try key.sign(claims: [
            "sub": .string(userID), "iat": .integer(Int64(now)), "exp": .integer(Int64(expiresAt)),
            // Two tokens of one user in one second differ.
            "jti": .string(UUIDv7.make()),
        ])
        state.withLock { state in
            state.expiry[token] = expiresAt
            if reason != .missing { state.refreshed += 1 }
        }
        return token
    }

    /// When a token that was made here expires, in seconds since 1970; nil for any other.
    func expiry(of token: String) -> Double? {
        state.withLock { $0.expiry[token] }
    }
}
