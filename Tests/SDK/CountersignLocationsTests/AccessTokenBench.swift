import CountersignCore
import CountersignDelivery
import CountersignTesting
import CountersignTransport
import Foundation
import SDKTestSupport
import TestSupport

@testable import CountersignLocations

/// An `AccessTokens` on a store of its own, a token server in memory and a manual clock.
final class AccessTokenBench: Sendable {
    private let folder = TemporaryFolder()
    var directory: URL { folder.url }
    let clock = ManualClock()
    let server: TokenServer
    let transport: ScriptedTransport
    let events = Lock([AuthorizationEvent]())
    let hasReported = Handshake()
    /// The generation after each change.
    let changes: AsyncStream<Int>
    private let changed: AsyncStream<Int>.Continuation
    let lines = Lock([String]())
    let fraction = Lock(1.0)

    init(server: TokenServer = TokenServer()) {
        self.server = server
        (changes, changed) = AsyncStream.makeStream()
        transport = ScriptedTransport { request in server.answer(request) }
    }

    var store: FileTokenStore { FileTokenStore(directory: directory) }

    /// The configuration with the token pair from the app's login.
    var configuration: AuthorizationConfiguration {
        var configuration = AuthorizationConfiguration()
        configuration.accessToken = "A0"
        configuration.refreshToken = "R0"
        configuration.refreshUrl = "https://auth.example/tokens"
        configuration.refreshPayload = ["refresh_token": "{refreshToken}"]
        return configuration
    }

    /// The configuration with another pair.
    func login(_ accessToken: String?, _ refreshToken: String?) -> AuthorizationConfiguration {
        var configuration = configuration
        configuration.accessToken = accessToken
        configuration.refreshToken = refreshToken
        return configuration
    }

    /// The configuration with an access token that expires after `seconds`.
    func expiring(in seconds: Double) -> AuthorizationConfiguration {
        var configuration = configuration
        configuration.expires = seconds
        return configuration
    }

    /// Makes the server hold its responses until the result is signalled.
    func holdAnswers() -> Handshake {
        let gate = Handshake()
        transport.setHandler { [server] request in
            await gate.wait()
            return server.answer(request)
        }
        return gate
    }

    /// Returns an `AccessTokens` that is closed after the test.
    func make(
        _ configuration: AuthorizationConfiguration? = nil, store: (any TokenStore)? = nil,
        isSparse: Bool = false
    ) -> AccessTokens {
        let tokens = AccessTokens(
            configuration: configuration ?? self.configuration, isSparse: isSparse,
            dependencies: AccessTokens.Dependencies(
                store: store ?? self.store, lockFile: directory.appendingPathComponent("lock"),
                transport: transport, clock: clock,
                random: { [fraction] in fraction.withLock { $0 } },
                log: CountersignLog(isEnabled: { _ in true }) { [lines] level, text, values in
                    lines.withLock { $0.append("\(level) \(text) \(values)") }
                },
                report: { [events, hasReported] event in
                    events.withLock { $0.append(event) }
                    hasReported.signal()
                }, changed: { [changed] generation in changed.yield(generation) }))
        Closing.afterTest { [folder] in
            await tokens.close()
            withExtendedLifetime(folder) {}
        }
        return tokens
    }

    var refreshes: Int { transport.requests.count }

    /// The refresh tokens that were sent, in order.
    var sent: [String] {
        transport.requests.map {
            String(decoding: $0.body, as: UTF8.self).replacingOccurrences(of: "refresh_token=", with: "")
        }
    }
}

extension CredentialDecision {
    var token: String? {
        guard case .ready(let credential) = self else { return nil }
        return credential.token?.rawValue
    }

    var generation: Int? {
        guard case .ready(let credential) = self else { return nil }
        return credential.generation
    }

    var retryAt: TimeInterval? {
        guard case .unavailable(_, let instant) = self else { return nil }
        return instant
    }

    var problem: String? {
        guard case .unavailable(let problem, _) = self else { return nil }
        return problem.code
    }
}
