import CountersignBloomreach
import CountersignCore
import CountersignDelivery
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

/// A provider that can be found by its class name.
final class NamedProvider: NSObject, AuthorizationProviderType {
    required override init() {}
    func getAuthorizationToken() -> String? { "named.to.ken" }
}

/// A provider with one token for its lifetime.
final class CachingNamedProvider: NSObject, AuthorizationProviderType {
    private let token = UUID().uuidString
    required override init() {}
    func getAuthorizationToken() -> String? { token }
}

/// A provider that is not an `NSObject`.
final class PlainProvider: AuthorizationProviderType {
    required init() {}
    func getAuthorizationToken() -> String? { nil }
}

/// An `NSObject` that is not a provider.
final class NotAProvider: NSObject {}

/// Neither an `NSObject` nor a provider.
final class PlainClass {}

private struct SuspendingProvider: AsyncAuthorizationProvider {
    let token: @Sendable () async throws -> String?
    func authorizationToken() async throws -> String? { try await token() }
}

@Suite(.closing, .timeLimit(.minutes(5)))
struct BloomreachProviderTests {
    private func device(
        _ provider: CustomerTokenProvider,
        server: ScriptedTransport = ScriptedTransport { _ in BloomreachDevice.success }
    ) throws -> BloomreachDevice {
        try BloomreachDevice(server: server) { $0.authorize(provider) }
    }

    private func device(_ token: @escaping @Sendable () -> String?) throws -> BloomreachDevice {
        try device(.instance(SampleProvider(token)))
    }

    // MARK: Discovery

    private func rejection(
        _ provider: CustomerTokenProvider?, _ wording: AuthorizationProviderDiscovery.Wording
    ) throws -> (thrown: String, logged: [String]) {
        let lines = Lock<[String]>([])
        var configuration = BloomreachConfiguration(project: try BloomreachDevice.project())
        configuration.authorize(provider)
        configuration.wording = wording
        configuration.log = CountersignLog(isEnabled: { $0 == .warning }) { _, line, _ in
            lines.withLock { $0.append(line) }
        }
        do {
            _ = try BloomreachClient(configuration: configuration)
            return ("", lines.withLock { $0 })
        } catch {
            #expect(error.code == .invalidConfiguration)
            return (error.detail, lines.withLock { $0 })
        }
    }

    // The log lines of Bloomreach's documentation, word for word.
    @Test func withoutAValidProviderEachPlatformsErrorTextIsLogged() throws {
        for (wording, provider, line) in [
            (.ios, nil, "Advanced authorization flag has been enabled without provider"),
            (.ios, .className("No.Class"), "Advanced authorization flag has been enabled without provider"),
            (
                .ios, .className("CountersignBloomreachTests.PlainProvider"),
                "Class ExponeaAuthProvider does not conform to NSObject"
            ),
            (
                .ios, .className("CountersignBloomreachTests.PlainClass"),
                "Class ExponeaAuthProvider does not conform to NSObject"
            ),
            (
                .ios, .className("CountersignBloomreachTests.NotAProvider"),
                "Class ExponeaAuthProvider does not conform to AuthorizationProviderType"
            ),
            (.android, nil, "Advanced auth has been enabled but provider has not been found"),
            (
                .android, .className("com.your.app.security.ExampleAuthProvider"),
                "Registered com.your.app.security.ExampleAuthProvider class has not been found"
            ),
            (
                .android, .className("CountersignBloomreachTests.NotAProvider"),
                "Registered CountersignBloomreachTests.NotAProvider class has to implement com.exponea.sdk.services.AuthorizationProvider"
            ),
        ] as [(AuthorizationProviderDiscovery.Wording, CustomerTokenProvider?, String)] {
            let rejection = try rejection(provider, wording)
            #expect(rejection.thrown == line)
            #expect(rejection.logged == [line])
        }
    }

    @Test func withoutAdvancedAuthNoProviderIsUsed() async throws {
        let device = try BloomreachDevice { $0.authorizationProvider = .className("No.Class") }
        _ = try await device.client.fetchAppInbox()
        #expect(device.requests.last?.header("Authorization") == "Token key")
    }

    @Test func classIsFoundByItsName() async throws {
        let device = try device(.className("CountersignBloomreachTests.NamedProvider"))
        _ = try await device.client.fetchAppInbox()
        #expect(device.requests.last?.header("Authorization") == "Bearer named.to.ken")
    }

    @Test(arguments: ["Authorization", "X-Countersign-Signature"])
    func anonymizingCreatesANamedProviderAgain(header: String) async throws {
        let device = try BloomreachDevice {
            let provider = CustomerTokenProvider.className("CountersignBloomreachTests.CachingNamedProvider")
            if header == "Authorization" { $0.authorize(provider) } else { $0.userTokenProvider = provider }
        }
        device.client.identifyCustomer(["registered": "ada"])
        _ = try await device.client.fetchAppInbox()
        _ = try await device.client.fetchAppInbox()
        device.client.anonymize()
        device.client.identifyCustomer(["registered": "grace"])
        _ = try await device.client.fetchAppInbox()
        let tokens = try device.requests.map { try #require($0.header(header)) }
        try #require(tokens.count == 3)
        #expect(tokens[0] == tokens[1])
        #expect(tokens[1] != tokens[2])
    }

    // MARK: Tokens from a provider

    @Test(
        arguments: [
            (nil, "no_customer_token"), ("", "no_customer_token"),
            ("a\r\nX-Evil: b", "malformed_customer_token"),
            ("tökén", "malformed_customer_token"),
        ] as [(String?, String)])
    func withoutATokenNoRequestIsSent(token: String?, code: String) async throws {
        let device = try device { token }
        let error = await #expect(throws: CountersignError.self) { try await device.client.fetchAppInbox() }
        #expect(error?.code.rawValue == code)
        #expect(error?.detail.hasSuffix("nothing was sent") == true)
        #expect(device.requests.isEmpty)
        #expect(device.lines.withLock { $0 } == ["customer token is missing, the request was not sent"])
    }

    @Test(arguments: [
        ("YOUR JWT TOKEN", "Bearer YOUR JWT TOKEN"), ("a.b.c", "Bearer a.b.c"),
        ("Bearer a.b.c", "Bearer a.b.c"),
    ])
    func theBearerPrefixIsAddedOnce(token: String, header: String) async throws {
        let device = try device { token }
        _ = try await device.client.fetchAppInbox()
        #expect(device.requests.map { $0.header("Authorization") } == [header])
    }

    // MARK: Threads and time

    @Test func aBlockingProviderDelaysNoOtherWork() async throws {
        let (entered, left) = (Handshake(), Handshake())
        let provider = SampleProvider {
            #expect(!Thread.isMainThread)
            entered.signal()
            left.block()
            return "a.b.c"
        }
        let device = try device(.instance(provider))
        async let inbox = device.client.fetchAppInbox()
        await entered.wait()
        device.client.trackEvent("meanwhile")
        #expect(await device.client.flush().isComplete)
        _ = try await device.client.fetchConsents()
        #expect(device.requests.count == 2)
        device.clock.advance(by: 10)
        left.signal()
        _ = try await inbox
        #expect(device.requests.count == 3)
    }

    @Test func aProviderTimeoutFailsTheCallAndItsLateTokenIsDropped() async throws {
        let entered = Handshake()
        let (left, done) = (Handshake(), Handshake())
        let calls = Lock(0)
        let provider = SampleProvider {
            let number = calls.withLock { calls in
                calls += 1
                return calls
            }
            guard number == 1 else { return "second" }
            entered.signal()
            left.block()
            defer { done.signal() }
            return "late"
        }
        let device = try device(.instance(provider))
        async let first = code { _ = try await device.client.fetchAppInbox() }
        await entered.wait()
        await device.clock.waitForSleeper()
        device.clock.advance(by: 30)
        #expect(await first == .providerTimedOut)
        // The next call does not wait for the hanging provider.
        _ = try await device.client.fetchAppInbox()
        left.signal()
        await done.wait()
        #expect(device.requests.map { $0.header("Authorization") } == ["Bearer second"])
    }

    @Test func aTimeoutErrorOfTheProviderIsReportedAsTimeout() async throws {
        let device = try device(.suspending(SuspendingProvider { throw TokenProviderTimeout() }))
        #expect(await code { _ = try await device.client.fetchAppInbox() } == .providerTimedOut)
    }

    /// A suspending provider may block its thread too.
    @Test(arguments: [false, true])
    func aHangingProviderBlocksALimitedNumberOfThreads(isAsync: Bool) async throws {
        let (entered, left) = (Handshake(), Handshake())
        let provider = SampleProvider.held(entered, left)
        let device = try device(
            isAsync
                ? .suspending(SuspendingProvider { provider.getAuthorizationToken() }) : .instance(provider))
        for number in 1...4 {
            async let call = code { _ = try await device.client.fetchAppInbox() }
            await entered.wait(count: number)
            await device.clock.waitForSleeper()
            device.clock.advance(by: 30)
            #expect(await call == .providerTimedOut)
        }
        // The fifth call gets no thread but still times out.
        async let fifth = code { _ = try await device.client.fetchAppInbox() }
        await device.clock.waitForSleeper()
        device.clock.advance(by: 30)
        #expect(await fifth == .providerTimedOut)
        #expect(provider.calls.withLock { $0 } == 4)
        left.signal()
    }

    @MainActor
    @Test func providerMayWaitForTheMainQueue() async throws {
        let device = try device { DispatchQueue.main.sync { "from.main.queue" } }
        _ = try await device.client.fetchAppInbox()
        #expect(device.requests.map { $0.header("Authorization") } == ["Bearer from.main.queue"])
    }

    @Test(arguments: [false, true])
    func aProviderThatCallsTheClientGetsAnErrorInsteadOfADeadlock(isCaching: Bool) async throws {
        let folder = TemporaryFolder()
        let client = Lock<BloomreachClient?>(nil)
        let inner = Lock<CountersignError.Code?>(nil)
        let provider = SampleProvider {
            let isOver = Handshake()
            Task {
                do {
                    _ = try await client.withLock { $0 }?.fetchAppInbox()
                } catch {
                    inner.withLock { $0 = (error as? CountersignError)?.code }
                }
                isOver.signal()
            }
            isOver.block()
            return "a.b.c"
        }
        let caching = CachingAuthorizationProvider(
            blocking: provider, store: FileTokenStore(directory: folder.url))
        let device = try device(isCaching ? .suspending(caching) : .instance(provider))
        client.withLock { $0 = device.client }
        _ = try await device.client.fetchAppInbox()
        #expect(inner.withLock { $0 } == .calledFromProvider)
        client.withLock { $0 = nil }
    }

    @Test func aHundredCallsWaitForASlowProviderWhileTrackingContinues() async throws {
        let (entered, left) = (Handshake(), Handshake())
        let inside = Lock((now: 0, most: 0))
        let provider = SampleProvider {
            inside.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            defer { inside.withLock { $0.now -= 1 } }
            entered.signal()
            left.block()
            return "a.b.c"
        }
        let device = try device(.instance(provider))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { _ = try await device.client.fetchAppInbox() } }
            await entered.wait()
            for number in 0..<20 { device.client.trackEvent("event \(number)") }
            #expect(await device.client.flush().delivered == 20)
            left.signal()
            try await group.waitForAll()
        }
        #expect(provider.calls.withLock { $0 } == 100)
        // The caching provider in Bloomreach's documentation has no lock, so calls must not overlap.
        #expect(inside.withLock { $0.most } == 1)
    }

    @Test func callsBeyondTheWaitingLimitFailAtOnce() async throws {
        let (entered, left) = (Handshake(), Handshake())
        let device = try device {
            entered.signal()
            left.block()
            return "a.b.c"
        }
        let codes = await withTaskGroup(of: CountersignError.Code?.self) { group in
            for _ in 0..<300 { group.addTask { await code { _ = try await device.client.fetchAppInbox() } } }
            var codes: [CountersignError.Code?] = []
            // One call is in progress and 256 wait. The other 43 are rejected.
            for _ in 0..<43 { codes.append(await group.next() ?? nil) }
            left.signal()
            for await code in group { codes.append(code) }
            return codes
        }
        #expect(codes.filter { $0 == .providerBusy }.count == 43)
        #expect(codes.filter { $0 == nil }.count == 257)
    }

    @Test func aCancelledCallEndsAtOnceAndStartsNoSecondProviderCall() async throws {
        let (entered, left) = (Handshake(), Handshake())
        let provider = SampleProvider.held(entered, left)
        let device = try device(.instance(provider))
        let call = Task { await code { _ = try await device.client.fetchAppInbox() } }
        await entered.wait()
        call.cancel()
        #expect(await call.value == .cancelled)
        async let next = device.client.fetchAppInbox()
        await device.clock.waitForSleeper(count: 2)
        #expect(provider.calls.withLock { $0 } == 1)
        left.signal()
        _ = try await next
    }
}
