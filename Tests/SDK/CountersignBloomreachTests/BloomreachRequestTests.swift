import CountersignBloomreach
import CountersignDelivery
import CountersignTesting
import CountersignTransport
import Foundation
import SDKTestSupport
import TestSupport
import Testing

/// The requests to each endpoint, compared with the vendor's documentation.
@Suite(.closing, .timeLimit(.minutes(5)))
struct BloomreachRequestTests {
    private static let fields = [
        "Content-Type: application/json", "Accept: application/json",
        "User-Agent: countersign-swift/\(SDKVersion.current)",
    ]
    private static let withKey = fields + ["Authorization: Token key"]
    private static let withToken = fields + ["Authorization: Bearer a.b.c"]

    /// The customer IDs as JSON, the cookie first.
    private func ids(_ device: BloomreachDevice) -> String {
        #"{"cookie":"\#(device.client.customerIDs["cookie"] ?? "")","registered":"ada"}"#
    }

    private func device(advanced: Bool = false) throws -> BloomreachDevice {
        try BloomreachDevice(
            server: ScriptedTransport { request in
                switch request.url.path {
                case let path where path.hasSuffix("attributes"):
                    .json(200, #"{"success":true,"results":[{"success":true,"value":[]}]}"#)
                case let path where path.hasSuffix("appinbox/fetch"):
                    .json(
                        200,
                        #"{"success":true,"messages":[{"id":"m1","type":"html","is_read":false}],"sync_token":"s1"}"#
                    )
                default: BloomreachDevice.success
                }
            }
        ) { configuration in
            configuration.advancedAuthEnabled = advanced
            configuration.authorizationProvider = .instance(SampleProvider())
        }
    }

    private func messageID(_ request: TransportRequest) throws -> String {
        try #require(request.json["message_id"] as? String)
    }

    // POST /track/v2/projects/<projectToken>/customers for tracking of customer data
    @Test func customerUpdateIsSentAsDocumented() async throws {
        let device = try device()
        device.client.identifyCustomer(["registered": "ada"], properties: ["first_name": "Ada"])
        await device.client.flush()
        let request = try #require(device.requests.first)
        #expect(
            request.url.absoluteString == "https://api.example.com/track/v2/projects/0aef3a96-3804/customers")
        #expect(request.head == ["POST /track/v2/projects/0aef3a96-3804/customers"] + Self.withKey)
        #expect(
            request.text
                == #"{"customer_ids":\#(ids(device)),"message_id":"\#(try messageID(request))","properties":{"first_name":"Ada"},"timestamp":1750000000.0}"#
        )
    }

    // POST /track/v2/projects/<projectToken>/customers/events for tracking of event data
    @Test func eventIsSentAsDocumented() async throws {
        let device = try device()
        device.client.identifyCustomer(["registered": "ada"])
        device.client.trackEvent("purchase", properties: ["total": 42.5], timestamp: 1_700_000_000.25)
        await device.client.flush()
        let request = try #require(device.requests.last)
        #expect(request.head == ["POST /track/v2/projects/0aef3a96-3804/customers/events"] + Self.withKey)
        #expect(
            request.text
                == #"{"customer_ids":\#(ids(device)),"event_type":"purchase","message_id":"\#(try messageID(request))","properties":{"sdk":"countersign-swift","sdk_version":"0.1.0","total":42.5},"timestamp":1700000000.25}"#
        )
    }

    // POST /track/v2/projects/<projectToken>/campaigns/clicks for tracking campaign events
    @Test func campaignClickIsSentAsDocumented() async throws {
        let device = try device()
        device.client.identifyCustomer(["registered": "ada"])
        let link = try #require(URL(string: "https://shop.example.com/?xnpe_cmp=abc&utm_source=mail"))
        device.client.trackCampaignClick(link)
        device.client.trackCampaignClick(try #require(URL(string: "https://shop.example.com/?xnpe_cmp=")))
        await device.client.flush()
        #expect(device.requests.count == 2, "a link without a campaign is not recorded")
        let request = try #require(device.requests.last)
        #expect(request.head == ["POST /track/v2/projects/0aef3a96-3804/campaigns/clicks"] + Self.withKey)
        #expect(
            request.text
                == #"{"customer_ids":\#(ids(device)),"event_type":"campaign_click","message_id":"\#(try messageID(request))","properties":{"platform":"ios","sdk":"countersign-swift","sdk_version":"0.1.0"},"timestamp":1750000000.0,"url":"https://shop.example.com/?xnpe_cmp=abc&utm_source=mail"}"#
        )
    }

    // POST /data/v2/projects/<projectToken>/customers/attributes for fetching customer attributes
    @Test func attributesRequestIsSentAsDocumented() async throws {
        let device = try device()
        device.client.identifyCustomer(["registered": "ada"])
        _ = try await device.client.fetchAttributes([.property("city")])
        let request = try #require(device.requests.last)
        #expect(request.head == ["POST /data/v2/projects/0aef3a96-3804/customers/attributes"] + Self.withKey)
        #expect(
            request.text
                == #"{"attributes":[{"property":"city","type":"property"}],"customer_ids":\#(ids(device))}"#
        )
    }

    // POST /data/v2/projects/<projectToken>/consent/categories for fetching consents
    @Test func consentsRequestIsSentAsDocumented() async throws {
        let device = try device()
        _ = try await device.client.fetchConsents()
        let request = try #require(device.requests.last)
        #expect(request.head == ["POST /data/v2/projects/0aef3a96-3804/consent/categories"] + Self.withKey)
        #expect(request.text == "{}")
    }

    // POST /webxp/s/<projectToken>/inappmessages?v=1 for fetching InApp messages
    @Test func inAppMessagesRequestIsSentAsDocumented() async throws {
        let device = try device()
        device.client.identifyCustomer(["registered": "ada"])
        _ = try await device.client.fetchInAppMessages()
        let request = try #require(device.requests.last)
        #expect(request.head == ["POST /webxp/s/0aef3a96-3804/inappmessages?v=1"] + Self.withKey)
        #expect(request.text == #"{"customer_ids":\#(ids(device)),"device":"ios"}"#)
    }

    // POST /webxp/projects/<projectToken>/appinbox/fetch for fetching of AppInbox data
    @Test(arguments: [false, true])
    func appInboxRequestIsSentAsDocumented(advanced: Bool) async throws {
        let device = try device(advanced: advanced)
        device.client.identifyCustomer(["registered": "ada"])
        _ = try await device.client.fetchAppInbox()
        _ = try await device.client.fetchAppInbox()
        let head =
            ["POST /webxp/projects/0aef3a96-3804/appinbox/fetch"] + (advanced ? Self.withToken : Self.withKey)
        #expect(device.requests.map(\.head) == [head, head])
        #expect(
            device.requests.map(\.text) == [
                #"{"customer_ids":\#(ids(device))}"#,
                #"{"customer_ids":\#(ids(device)),"sync_token":"s1"}"#,
            ])
    }

    // POST /webxp/projects/<projectToken>/appinbox/markasread for marking of AppInbox message as read
    @Test(arguments: [false, true])
    func markAsReadRequestIsSentAsDocumented(advanced: Bool) async throws {
        let device = try device(advanced: advanced)
        device.client.identifyCustomer(["registered": "ada"])
        let message = try #require(try await device.client.fetchAppInbox().first)
        try await device.client.markAsRead(message)
        let request = try #require(device.requests.last)
        #expect(
            request.head == ["POST /webxp/projects/0aef3a96-3804/appinbox/markasread"]
                + (advanced ? Self.withToken : Self.withKey))
        #expect(
            request.text
                == #"{"customer_ids":\#(ids(device)),"message_ids":["m1"],"sync_token":"s1"}"#)
        #expect(await device.client.cachedAppInbox().map(\.isRead) == [true])
    }

    // POST /campaigns/send-self-check-notification?project_id=<projectToken>
    @Test func selfCheckRequestIsSentAsDocumented() async throws {
        let device = try device()
        device.client.identifyCustomer(["registered": "ada"])
        try await device.client.sendSelfCheck(pushToken: "push")
        let request = try #require(device.requests.last)
        #expect(
            request.head
                == ["POST /campaigns/send-self-check-notification?project_id=0aef3a96-3804"] + Self.withKey)
        #expect(
            request.text
                == #"{"customer_ids":\#(ids(device)),"platform":"ios","push_notification_id":"push"}"#)
    }

    @Test func withCustomerTokensOtherRequestsStillUseTheAPIKey() async throws {
        let device = try device(advanced: true)
        device.client.identifyCustomer(["registered": "ada"])
        device.client.trackEvent("purchase")
        device.client.trackCampaignClick(try #require(URL(string: "https://shop.example.com/?xnpe_cmp=abc")))
        await device.client.flush()
        _ = try await device.client.fetchAttributes([.property("first_name")])
        _ = try await device.client.fetchConsents()
        _ = try await device.client.fetchInAppMessages()
        try await device.client.sendSelfCheck(pushToken: "push")
        #expect(device.requests.count == 7)
        #expect(device.requests.allSatisfy { $0.header("Authorization") == "Token key" })
        #expect(BloomreachEndpoint.allCases.count == 9)
        #expect(
            BloomreachEndpoint.allCases.filter(\.takesCustomerToken) == [.fetchAppInbox, .markAppInboxAsRead])
    }

    @Test func theApplicationIDIsSentIfConfigured() async throws {
        let device = try BloomreachDevice { $0.applicationID = "com.example.shop" }
        _ = try await device.client.fetchAppInbox()
        #expect(device.requests.last?.json["application_id"] as? String == "com.example.shop")
    }

    @Test(
        arguments: [
            ("", "key", nil), ("a b", "key", nil), ("p/../q", "key", nil), ("p", "", nil),
            ("p", "k\r\nX: y", nil),
            ("p", "key", "ftp://x"), ("p", "key", "https://"), ("p", "key", "https://x/?q=1"),
        ] as [(String, String, String?)])
    func projectsThatCannotWorkAreRejected(token: String, key: String, baseURL: String?) {
        #expect(throws: CountersignError.self) {
            try BloomreachProject(token: token, apiKey: key, baseURL: baseURL)
        }
    }

    @Test func apiKeysAreNotInDescriptions() throws {
        let project = try BloomreachDevice.project(key: "very-secret")
        var dumped = ""
        dump(project, to: &dumped)
        #expect(!"\(project) \(String(reflecting: project)) \(dumped)".contains("very-secret"))
    }
}
