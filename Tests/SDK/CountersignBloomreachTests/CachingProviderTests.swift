import CountersignCore
import CountersignDelivery
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import CountersignBloomreach

@Suite(.closing, .timeLimit(.minutes(5)))
struct CachingProviderTests {
    /// Returns a new token on each call, valid for ten minutes.
    private final class Source: AsyncAuthorizationProvider, CustomerObserving {
        let clock: ManualClock
        let calls = Lock(0)
        let customers = Lock<[[String: String]]>([])
        let isNotified = Handshake()
        let opaque: Bool
        let whileFetching: @Sendable () async -> Void

        init(
            clock: ManualClock, opaque: Bool = false, whileFetching: @escaping @Sendable () async -> Void = {}
        ) {
            self.clock = clock
            self.opaque = opaque
            self.whileFetching = whileFetching
        }

        func authorizationToken() async throws -> String? {
            await whileFetching()
            let serial = calls.withLock { calls in
                calls += 1
                return calls
            }
            if opaque { return "token-\(serial)" }
            return SignedToken.fake(
                subject: "ada", expiresAt: Int(clock.now.timeIntervalSince1970) + 600, serial: serial)
        }

        func customerChanged(to customerIDs: [String: String]) {
            customers.withLock { $0.append(customerIDs) }
            isNotified.signal()
        }
    }

    private let clock = ManualClock()
    private let folder = TemporaryFolder()

    private func provider(_ source: Source) -> CachingAuthorizationProvider {
        CachingAuthorizationProvider(
            source, store: FileTokenStore(directory: folder.url), now: { [clock] in clock.now })
    }

    @Test func theAppsProviderIsCalledOnlyNearTheTokensExpiry() async throws {
        let source = Source(clock: clock)
        let provider = provider(source)
        let first = try await provider.authorizationToken()
        clock.advance(by: 539)
        #expect(try await provider.authorizationToken() == first)
        // Also in a new instance, as after a start of the app.
        #expect(try await self.provider(source).authorizationToken() == first)
        #expect(source.calls.withLock { $0 } == 1)
        clock.advance(by: 1)
        #expect(try await provider.authorizationToken() != first)
        #expect(source.calls.withLock { $0 } == 2)
    }

    @Test func aChangeOfCustomerOrARejectionDropsTheCachedToken() async throws {
        let source = Source(clock: clock)
        let provider = provider(source)
        let first = try await provider.authorizationToken()
        provider.customerChanged(to: ["registered": "grace"])
        #expect(source.customers.withLock { $0 } == [["registered": "grace"]])
        #expect(try FileTokenStore(directory: folder.url).token(for: "customer-token") == nil)
        let second = try await provider.authorizationToken()
        #expect(second != first)
        provider.customerTokenRefused()
        #expect(try await provider.authorizationToken() != second)
        #expect(source.calls.withLock { $0 } == 3)
    }

    /// A late token belongs to the customer at the time of the call.
    @Test func aTokenReturnedAfterAChangeOfCustomerIsNotCached() async throws {
        let (asked, goOn) = (Handshake(), Handshake())
        let source = Source(clock: clock) {
            asked.signal()
            await goOn.wait()
        }
        let provider = provider(source)
        async let first = provider.authorizationToken()
        await asked.wait()
        provider.customerChanged(to: ["registered": "grace"])
        goOn.signal()
        let late = try #require(try await first)
        #expect(try FileTokenStore(directory: folder.url).token(for: "customer-token") == nil)
        #expect(try await provider.authorizationToken() != late)
    }

    @Test func aTokenRemovedWhileItIsStoredStaysRemoved() async throws {
        let store = HookedTokenStore(FileTokenStore(directory: folder.url))
        let provider = CachingAuthorizationProvider(
            Source(clock: clock), store: store, now: { [clock] in clock.now })
        store.setHooks { $0.willStore = { _ in provider.customerChanged(to: [:]) } }
        _ = try await provider.authorizationToken()
        #expect(try store.token(for: "customer-token") == nil)
        store.setHooks()
    }

    private func device(
        _ provider: CachingAuthorizationProvider, _ server: ScriptedTransport
    ) throws -> BloomreachDevice {
        try BloomreachDevice(clock: clock, server: server) { $0.authorize(.suspending(provider)) }
    }

    @Test func aWipeRemovesTheCachedToken() async throws {
        let source = Source(clock: clock)
        let caching = provider(source)
        let server = ScriptedTransport { _ in
            .json(200, #"{"success":true,"messages":[],"sync_token":"1"}"#)
        }
        let device = try device(caching, server)
        _ = try await device.client.fetchAppInbox()
        let store = FileTokenStore(directory: folder.url)
        #expect(try store.token(for: "customer-token") != nil)
        try await device.client.wipeData()
        await source.isNotified.wait()
        #expect(try store.token(for: "customer-token") == nil)
    }

    /// The app may end between the change of the customer and the notification.
    @Test func aStoredTokenIsNotUsedForAnotherCustomer() async throws {
        struct Unnotified: AsyncAuthorizationProvider {
            let provider: CachingAuthorizationProvider
            func authorizationToken() async throws -> String? { try await provider.authorizationToken() }
        }
        let source = Source(clock: clock)
        func configure(_ configuration: inout BloomreachConfiguration) {
            configuration.authorize(.suspending(Unnotified(provider: provider(source))))
        }
        var device = try BloomreachDevice(clock: clock, configure)
        device.client.identifyCustomer(["registered": "ada"])
        _ = try await device.client.fetchAppInbox()
        device = try await device.restarted(configure)
        _ = try await device.client.fetchAppInbox()
        #expect(source.calls.withLock { $0 } == 1)
        device.client.identifyCustomer(["registered": "grace"])
        device = try await device.restarted(configure)
        _ = try await device.client.fetchAppInbox()
        #expect(source.calls.withLock { $0 } == 2)
    }

    @Test func aTokenWithoutAReadableExpiryIsNotCached() async throws {
        let source = Source(clock: clock, opaque: true)
        let provider = provider(source)
        #expect(try await provider.authorizationToken() == "token-1")
        #expect(try await provider.authorizationToken() == "token-2")
    }

    @Test func theClientDropsTheCachedTokenOn401OrAnotherCustomer() async throws {
        let source = Source(clock: clock)
        let caching = provider(source)
        let answers = Lock([401, 200, 200])
        let server = ScriptedTransport { request in
            answers.withLock { $0.removeFirst() } == 401
                ? .json(401, #"{"success":false,"error":"\#(request.header("Authorization") ?? "")"}"#)
                : .json(200, #"{"success":true,"messages":[],"sync_token":"1"}"#)
        }
        let device = try device(caching, server)
        let error = await #expect(throws: CountersignError.self) { try await device.client.fetchAppInbox() }
        #expect(error?.detail == "Bearer (token)", "the error hides the token that the server repeats")
        _ = try await device.client.fetchAppInbox()
        #expect(source.calls.withLock { $0 } == 2)
        device.client.identifyCustomer(["registered": "grace"])
        _ = try await device.client.fetchAppInbox()
        #expect(source.calls.withLock { $0 } == 3)
    }

    /// A 401 to a request with the API key does not make the cached token invalid.
    @Test(arguments: [
        (500, "appinbox/fetch", true), (401, "appinbox/fetch", false), (401, "consent/categories", true),
    ])
    func onlyARejectionOfTheTokenDropsTheCachedToken(status: Int, path: String, isKept: Bool) async throws {
        let source = Source(clock: clock)
        let caching = provider(source)
        let server = ScriptedTransport { request in
            request.url.path.hasSuffix(path) ? .json(status, #"{"success":false}"#) : BloomreachDevice.success
        }
        let device = try device(caching, server)
        let first = try await caching.authorizationToken()
        await #expect(throws: CountersignError.self) {
            if path.hasPrefix("consent") {
                _ = try await device.client.fetchConsents()
            } else {
                _ = try await device.client.fetchAppInbox()
            }
        }
        // The next request runs after the provider has been notified.
        _ = try? await device.client.fetchAppInbox()
        #expect(try await (caching.authorizationToken() == first) == isKept)
    }

    @Test func tokensOfABlockingProviderAreCached() async throws {
        let token = SignedToken.fake(subject: "ada", expiresAt: Int(clock.now.timeIntervalSince1970) + 600)
        let source = SampleProvider { token }
        let provider = CachingAuthorizationProvider(
            blocking: source, store: FileTokenStore(directory: folder.url), now: { [clock] in clock.now })
        #expect(try await provider.authorizationToken() == token)
        #expect(try await provider.authorizationToken() == token)
        #expect(source.calls.withLock { $0 } == 1)
        provider.customerChanged(to: [:])
        #expect(source.customers.withLock { $0.count } == 1)
    }
}
