internal import Countersign
internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

final class DemoTokens: Sendable {
    /// In seconds. The SDK replaces a token 5 seconds before its expiry, so each token is used for 2 to 3 seconds.
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

    var refreshed: Int { state.withLock { $0.refreshed } }

    func token(for userID: String, reason: TokenRequest.Reason) throws -> String {
        let now = Date().timeIntervalSince1970
        let expiresAt = (now + Self.lifetimeSeconds).rounded(.up)
        let token = try key.sign(claims: [
            "sub": .string(userID), "iat": .integer(Int64(now)), "exp": .integer(Int64(expiresAt)),
            // Makes two tokens of one user in the same second different.
            "jti": .string(UUIDv7.make()),
        ])
        state.withLock { state in
            state.expiry[token] = expiresAt
            if reason != .missing { state.refreshed += 1 }
        }
        return token
    }

    /// The expiry of a token created here, in seconds since 1970; nil for other tokens.
    func expiry(of token: String) -> Double? {
        state.withLock { $0.expiry[token] }
    }
}
