import CountersignCore
import CountersignDelivery
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import CountersignTesting
import Foundation
import GatewayModel
import GatewayStorage
import SDKTestSupport
import TestSupport
import Testing

@testable import CountersignBloomreach

/// Requests to each `BloomreachEndpoint` of a gateway, over a socket.
@Suite(.closing, .timeLimit(.minutes(5)))
struct BloomreachGatewayTests {
    private let fixture: GatewayFixture
    private let client: BloomreachClient
    private let tokens: Lock<[String?]>

    init() throws {
        fixture = try GatewayFixture(enforcement: .disabled)
        try fixture.apps.setCustomerTokens(.required, for: fixture.appID)
        let tokens = Lock<[String?]>([])
        self.tokens = tokens
        var configuration = BloomreachConfiguration(
            project: try BloomreachProject(
                token: fixture.appID, apiKey: fixture.writeKey,
                baseURL: "http://127.0.0.1:\(fixture.gateway.port)"))
        configuration.dataDirectory = URL(fileURLWithPath: fixture.dataDirectory).appendingPathComponent(
            "device")
        configuration.flushPolicy = .manual
        configuration.advancedAuthEnabled = true
        // The last token is returned repeatedly.
        configuration.authorizationProvider = .instance(
            SampleProvider { tokens.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? nil } })
        client = try BloomreachClient(configuration: configuration)
        Closing.afterTest { [client, fixture] in
            await client.close()
            withExtendedLifetime(fixture) {}
        }
        client.identifyCustomer(["registered": "ada"], properties: ["city": "London"])
    }

    private func token(_ user: String = "ada", lifetime: Double = 600) throws -> String {
        try fixture.signingKey.sign(claims: [
            "sub": ["registered": .string(user)],
            "exp": .integer(Int64(Date().timeIntervalSince1970 + lifetime)),
        ])
    }

    private func edit(_ body: (AppDirectory) throws -> Void) throws {
        try body(fixture.apps)
        try fixture.gateway.refreshApps()
    }

    @Test func aGatewayAcceptsDeeplyNestedProperties() async throws {
        try edit { _ in }
        let deep = (0..<20_000).reduce(JSONValue.integer(1)) { inner, _ in [inner] }
        client.defaultProperties = ["default": deep]
        client.trackEvent("purchase", properties: ["deep": deep])
        client.trackCustomer(properties: ["deep": deep])
        #expect(await client.flush().isComplete)
        #expect(try await client.quarantinedEvents().isEmpty)
    }

    @Test func trackedDataArrivesOnceAndInOrder() async throws {
        try edit { _ in }
        client.trackEvent("purchase", properties: ["total": 42.5])
        // Equal events with the same timestamp are still two events.
        client.trackEvent("tick", timestamp: 1_700_000_000)
        client.trackEvent("tick", timestamp: 1_700_000_000)
        client.trackCampaignClick(try #require(URL(string: "https://shop.example.com/?xnpe_cmp=abc")))
        #expect(await client.flush().isComplete)
        #expect(await client.flush().delivered == 0)
        #expect(
            try fixture.rows("type", "user_id", "name") == [
                ["identify", "ada", nil], ["track", "ada", "purchase"], ["track", "ada", "tick"],
                ["track", "ada", "tick"], ["track", "ada", "campaign_click"],
            ])
    }

    /// Uses the platform's transport. A server that never answers a query still receives the events.
    @Test func aSlowQueryDelaysNoEvent() async throws {
        let asked = Handshake()
        let server = try RawServer { head in
            if head.hasPrefix("POST /track/") {
                return "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"success\":true}"
            }
            asked.signal()
            return ""
        }
        var configuration = BloomreachConfiguration(
            project: try BloomreachProject(
                token: "p", apiKey: "key", baseURL: "http://127.0.0.1:\(server.port)"))
        configuration.dataDirectory = URL(fileURLWithPath: fixture.dataDirectory).appendingPathComponent(
            "slow")
        configuration.flushPolicy = .manual
        let client = try BloomreachClient(configuration: configuration)
        Closing.afterTest { await client.close() }
        let query = Task { try await client.fetchConsents() }
        await asked.wait()
        client.trackEvent("meanwhile")
        #expect(await client.flush().isComplete)
        query.cancel()
        let error = await #expect(throws: CountersignError.self) { try await query.value }
        #expect(error?.code == .cancelled)
    }

    @Test func consentsAndInAppMessagesAreFetched() async throws {
        try edit { apps in
            try apps.projects.put(.consentCategory, json: #"{"id":"newsletter"}"#, in: fixture.appID)
            try apps.projects.put(
                .inAppMessage,
                json: #"{"id":"hello","name":"Hello","trigger":{"event_type":"session_start"}}"#,
                in: fixture.appID)
        }
        #expect(await client.flush().isComplete)
        let attributes = try await client.fetchAttributes([
            .property("city"), .id("registered"), .property("x"),
        ])
        // Attributes of a customer with a `registered` ID require a user token. The API key is not sufficient.
        #expect(attributes.map(\.isSuccess) == [false, false, false])
        #expect(try await client.fetchConsents().map(\.id) == ["newsletter"])
        let message = try #require(try await client.fetchInAppMessages().first)
        #expect(message.id == "hello" && message.triggerEventType == "session_start")
    }

    @Test func theAppInboxIsFetchedMarkedAndFetchedFromTheStartAfterA410() async throws {
        try edit { apps in
            for (id, user) in [("a", "ada"), ("g", "grace")] {
                try apps.projects.putInboxMessage(
                    id: id, type: "html", content: #"{"title":"T"}"#,
                    recipient: CustomerIdentifier(name: "registered", value: user), in: fixture.appID)
            }
        }
        tokens.withLock { $0 = [try? token()] }
        #expect(await client.flush().isComplete)
        let message = try #require(try await client.fetchAppInbox().first)
        #expect(message.id == "a")
        try await client.markAsRead(message)
        #expect(try await client.fetchAppInbox().map(\.isRead) == [true])
        // The gateway invalidates all sync tokens. The client gets a 410 once and fetches from the start.
        try edit { try $0.projects.endSyncTokens(of: fixture.appID) }
        #expect(try await client.fetchAppInbox().map(\.id) == ["a"])
    }

    /// The default authorization, with a signed-user token in addition to the API key.
    @Test func ownAttributesAndInboxAreReadWithAUserToken() async throws {
        #expect(await client.flush().isComplete)
        try edit { apps in
            try apps.setCustomerTokens(.off, for: fixture.appID)
            try apps.projects.putInboxMessage(
                id: "a", type: "html", content: #"{"title":"T"}"#,
                recipient: CustomerIdentifier(name: "registered", value: "ada"), in: fixture.appID)
        }
        let token = Lock<String?>(nil)
        var configuration = BloomreachConfiguration(project: client.project)
        configuration.dataDirectory = URL(fileURLWithPath: fixture.dataDirectory).appendingPathComponent(
            "signed")
        configuration.flushPolicy = .manual
        configuration.userTokenProvider = .instance(SampleProvider { token.withLock { $0 } })
        let signed = try BloomreachClient(configuration: configuration)
        Closing.afterTest { await signed.close() }
        signed.identifyCustomer(["registered": "ada"])
        #expect(try await signed.fetchAttributes([.property("city")]).map(\.isSuccess) == [false])
        #expect(try await signed.fetchAppInbox().isEmpty)
        token.withLock { $0 = try? fixture.token(for: "ada") }
        #expect(try await signed.fetchAttributes([.property("city")]).map(\.value) == ["London"])
        let message = try #require(try await signed.fetchAppInbox().first)
        try await signed.markAsRead(message)
        let reads = try fixture.place.connection(to: "events").all("SELECT message_id FROM inbox_read") {
            $0.text(0)
        }
        #expect(reads == ["a"])
    }

    @Test func theErrorOfARejectedCustomerTokenHasItsCodeAndNotTheToken() async throws {
        try edit { _ in }
        #expect(await client.flush().isComplete)
        let cases: [(String, CountersignError.Code, AuthErrorCode)] = [
            (try token(lifetime: -600), .authorizationRefused, .expired),
            (try token("grace"), .tokenOfAnotherCustomer, .subjectMismatch),
            ("a.b.c", .authorizationRefused, .decodingError),
        ]
        for (text, code, authCode) in cases {
            tokens.withLock { $0 = [text] }
            let error = await #expect(throws: CountersignError.self) { try await client.fetchAppInbox() }
            #expect(error?.code == code)
            #expect(error?.authCode == authCode)
            #expect(error.map { "\($0)".contains(text) } == false)
        }
    }

    @Test func selfCheckReachesTheProjectsWebhook() async throws {
        let webhook = try RawServer { _ in "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n" }
        try edit { apps in
            _ = try apps.setPushWebhook(
                url: "http://127.0.0.1:\(webhook.port)/push", allowsPrivateAddresses: true,
                for: fixture.appID)
        }
        try await client.sendSelfCheck(pushToken: "push")
        #expect(webhook.requests.first?.hasPrefix("POST /push HTTP/1.1") == true)
    }

    @Test func selfCheckWithoutAWebhookReportsTheMissingWebhook() async throws {
        try edit { _ in }
        let error = await #expect(throws: CountersignError.self) {
            try await client.sendSelfCheck(pushToken: "push")
        }
        #expect(error?.code == .refused && error?.status == 409)
        #expect(error?.detail.contains("webhook") == true)
    }

    @Test func aRejectedKeyKeepsAllEventsQueued() async throws {
        try edit { _ in }
        let other = try fixture.apps.createApp(id: "other")
        try fixture.gateway.refreshApps()
        client.anonymize(
            project: try BloomreachProject(
                token: fixture.appID, apiKey: other.writeKey,
                baseURL: "http://127.0.0.1:\(fixture.gateway.port)"))
        client.trackEvent("kept")
        await client.flush()
        #expect(await client.snapshot().queued == 2)
        client.anonymize(
            project: try BloomreachProject(
                token: fixture.appID, apiKey: fixture.writeKey,
                baseURL: "http://127.0.0.1:\(fixture.gateway.port)"))
        #expect(await client.flush().isComplete)
    }
}
