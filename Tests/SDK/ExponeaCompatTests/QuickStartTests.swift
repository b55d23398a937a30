import CountersignTesting
import Foundation
import Testing

@testable import ExponeaCompat

/// The calls in the vendor's guides for ExponeaSDK 4.0.1 (setup, tracking, fetching, App Inbox, flushing), with other
/// values. Each test has an instance and a scripted transport.
@Suite(.timeLimit(.minutes(5)))
struct QuickStartTests {
    private struct Tea: RecommendationUserData {
        let title: String
        let price: Double
    }

    private let folder = TemporaryFolder()
    private let server = ScriptedTransport { request in
        let text =
            switch request.url.path {
            case let path where path.hasSuffix("/customers/attributes"):
                #"{"success":true,"results":[]}"#
            case let path where path.hasSuffix("/appinbox/fetch"):
                #"{"success":true,"sync_token":"s","messages":[{"id":"m1","type":"html","is_read":false,"create_time":1,"content":{"title":"Hi","attributes":{"campaign_id":"c1"},"has_tracking_consent":true}},{"id":"m2","type":"html","content":{"has_tracking_consent":false}}]}"#
            case let path where path.hasSuffix("/consent/categories"): #"{"success":true,"results":[]}"#
            default: #"{"success":true}"#
            }
        return TransportResponse(status: 200, body: Array(text.utf8))
    }

    private func start() -> Exponea {
        let exponea = Exponea()
        exponea.setTestDependencies(dataDirectory: folder.url, transport: server)
        return exponea
    }

    private func configured() -> Exponea {
        let exponea = start()
        exponea.configure(
            Exponea.ProjectSettings(
                projectToken: "tea-shop",
                authorization: .token("YOUR API KEY"),
                baseUrl: "https://api.example.com"
            ),
            pushNotificationTracking: .disabled,
            automaticSessionTracking: .enabled(timeout: 20),
            flushingSetup: Exponea.FlushingSetup(mode: .manual)
        )
        return exponea
    }

    private func result<Value: Sendable>(
        _ call: (@escaping @Sendable (Result<Value>) -> Void) -> Void
    ) async throws -> Value {
        try await completion(of: call).get()
    }

    private func flush(_ exponea: Exponea) async throws {
        let _: FlushResult = try await completion { exponea.flushData(completion: $0) }
    }

    private var events: [String] {
        server.requests.compactMap { request in
            let body = try? JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any]
            return body?["event_type"] as? String
        }
    }

    @Test func theGuidesTrackingCallsSendTheirEvents() async throws {
        let exponea = configured()
        #expect(exponea.isConfigured)
        let properties: [String: any JSONConvertible] = [
            "screen_name": "dashboard",
            "other_property": 123.45,
        ]
        exponea.trackEvent(properties: properties, timestamp: nil, eventType: "screen_view")
        let customerIds: [String: any JSONConvertible] = ["registered": "jane.doe@example.com"]
        exponea.identifyCustomer(customerIds: customerIds, properties: ["age": 32], timestamp: nil)
        exponea.trackPayment(properties: ["value": 7.99], timestamp: nil)
        exponea.trackSessionStart()
        exponea.trackPushToken("value-of-push-token")
        exponea.handlePushNotificationToken(deviceToken: Data([1, 2]))
        exponea.trackSessionEnd()
        exponea.defaultProperties = ["app": "shop"]
        #expect(exponea.defaultProperties?.keys.sorted() == ["app"])
        exponea.trackEvent(eventType: "after")
        let done = Handshake()
        exponea.anonymize { done.signal() }
        await done.wait()
        #expect(
            events == [
                "screen_view", "payment", "installation", "session_start", "notification_state",
                "notification_state", "session_end", "after", "notification_state", "notification_state",
            ])
        #expect(String(decoding: try #require(server.requests.last).body, as: UTF8.self).contains("0102"))
        exponea.anonymize(
            exponeaIntegrationType: ExponeaProject(
                baseUrl: "https://api.example.com",
                projectToken: "other-shop",
                authorization: .token("YOUR API KEY")
            ),
            exponeaProjectMapping: nil
        )
        exponea.trackEvent(eventType: "elsewhere")
        try await flush(exponea)
        #expect(server.requests.last?.url.path == "/track/v2/projects/other-shop/customers/events")
        await exponea.close()
    }

    @Test func theGuidesFetchingCallsReturnTheirResults() async throws {
        let exponea = start()
        try exponea.configure(map: [
            "projectToken": "tea-shop", "authorizationToken": "YOUR API KEY", "platform": "android",
            "baseUrl": "https://api.example.com", "flushMode": "MANUAL",
        ])
        let options = RecommendationOptions(
            id: "engine", fillWithRandom: true, size: 5, items: ["product456": "10", "product123": "1"])
        let error = await #expect(throws: CountersignError.self) {
            let _: RecommendationResponse<Tea> = try await result {
                exponea.fetchRecommendation(with: options, completion: $0)
            }
        }
        #expect(error?.code == .notSupported)
        try await completion { end in
            exponea.fetchConsents { (result) in
                switch result {
                case .success(let response): #expect(response.consents.isEmpty)
                case .failure(let error): Issue.record("\(error.localizedDescription)")
                }
                end(())
            }
        }
        let messages: [MessageItem] = try await result { exponea.fetchAppInbox(completion: $0) }
        #expect(messages.map(\.read) == [false, false])
        let message: MessageItem = try await result { exponea.fetchAppInboxItem("m1", completion: $0) }
        exponea.trackAppInboxOpened(message: message)
        exponea.trackAppInboxClick(
            action: MessageItemAction(action: "browser", title: "Buy", url: "https://shop.example"),
            message: message)
        // Without consent no event is tracked, unless the app calls the method that ignores consent.
        let silent = try #require(messages.first { $0.id == "m2" })
        exponea.trackAppInboxOpened(message: silent)
        exponea.trackAppInboxClick(
            action: MessageItemAction(action: "browser", title: "Buy", url: nil), message: silent)
        exponea.trackAppInboxOpenedWithoutTrackingConsent(message: silent)
        let done = Handshake()
        exponea.markAppInboxAsRead(message) { marked in
            #expect(marked)
            done.signal()
        }
        await done.wait()
        try await flush(exponea)
        #expect(events == ["campaign", "campaign", "campaign"])
        let click = try #require(
            server.requests.filter { $0.url.path.hasSuffix("/customers/events") }.dropFirst().first)
        let text = String(decoding: click.body, as: UTF8.self)
        for part in [
            #""status":"clicked""#, #""cta":"Buy""#, #""url":"https://shop.example""#, #""campaign_id":"c1""#,
            #""action_type":"app inbox""#, #""platform":"android""#,
        ] {
            #expect(text.contains(part), "\(part)")
        }
        await #expect(throws: CountersignError.self) {
            let _: MessageItem = try await result { exponea.fetchAppInboxItem("none", completion: $0) }
        }
        await exponea.close()
    }

    @Test func stopIntegrationDeletesAllDataAndConfigureStartsAgain() async throws {
        let exponea = configured()
        let cookie = try #require(exponea.customerCookie)
        exponea.trackEvent(eventType: "gone")
        let done = Handshake()
        exponea.stopIntegration { done.signal() }
        await done.wait()
        #expect(!exponea.isConfigured)
        exponea.configure(
            projectToken: "tea-shop", authorization: .token("YOUR API KEY"),
            baseUrl: "https://api.example.com", appGroup: nil, inAppContentBlocksPlaceholders: nil,
            manualSessionAutoClose: false, applicationID: "shop-app")
        #expect(exponea.isConfigured)
        #expect(exponea.flushingMode == .manual)
        #expect(exponea.customerCookie != cookie)
        try await flush(exponea)
        #expect(events.isEmpty)
        exponea.flushingMode = .periodic(10)
        await exponea.close()
    }

    @Test func aNewConfigurationStartsWithoutDataOfThePreviousOne() async throws {
        let exponea = configured()
        exponea.identifyCustomer(customerIds: ["registered": "ada"], properties: [:], timestamp: nil)
        let cookie = try #require(exponea.customerCookie)
        let stopped = Handshake()
        exponea.stopIntegration { stopped.signal() }
        exponea.configure(
            Exponea.ProjectSettings(
                projectToken: "tea-shop", authorization: .token("YOUR API KEY"),
                baseUrl: "https://api.example.com"),
            pushNotificationTracking: .disabled, flushingSetup: Exponea.FlushingSetup(mode: .manual))
        #expect(exponea.customerCookie != cookie)
        exponea.trackEvent(eventType: "after")
        await stopped.wait()
        try await flush(exponea)
        #expect(events.contains("after"))
        #expect(!server.requests.contains { String(decoding: $0.body, as: UTF8.self).contains(#""ada""#) })
        await exponea.close()
    }
}
