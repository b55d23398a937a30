import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct BloomreachTrackingTests {
    private let client: BloomreachClient

    init() throws {
        client = try BloomreachClient()
    }

    private let cookie = "1B0B6A6F-90D4-4B3C-8A41-6F2D37A7B5E1"

    private func properties(_ names: String..., of user: String? = nil) throws -> [Any?] {
        let asked = names.map { #"{"type":"property","property":"\#($0)"}"# }.joined(separator: ",")
        let answer = client.post(
            "/data/v2/projects/{p}/customers/attributes",
            #"{"customer_ids":{"cookie":"\#(cookie)"\#(user.map { #","registered":"\#($0)""# } ?? "")},"attributes":[\#(asked)]}"#,
            extra: try user.map { ["X-Countersign-Signature": try client.fixture.token(for: $0)] } ?? [:])
        let results = try #require(answer?.json["results"] as? [[String: Any]])
        return results.map { $0["value"] is NSNull ? nil : $0["value"] }
    }

    // MARK: Requests of shipped SDKs

    /// iOS SDK 3.7 and later.
    @Test func aCustomerUpdateIsStoredAndMerged() throws {
        let body =
            #"{"properties":{"first_name":"Jane","age":31,"tags":["a"],"vip":true},"timestamp":1700000000.123,"customer_ids":{"registered":"jane@example.com","cookie":"\#(cookie)"}}"#
        let answer = try #require(client.post("/track/v2/projects/{p}/customers", body))
        #expect(ShippedClient.outcome(answer) == .success)
        #expect(answer.body == #"{"success":true,"errors":[]}"# + "\n")
        #expect(
            try client.events() == [["identify", "jane@example.com", cookie, nil, "1700000000123", body]])
        let values = try properties("first_name", "age", "tags", "vip", "missing", of: "jane@example.com")
        #expect(values[0] as? String == "Jane")
        #expect(values[1] as? Int == 31)
        #expect(values[2] as? [String] == ["a"])
        #expect(values[3] as? Bool == true)
        #expect(values[4] == nil)
    }

    /// A profile with very many properties would slow down all requests, and an update needs no token.
    @Test func theProfilePropertiesSetByUpdatesAreLimited() throws {
        for request in 0..<3 {
            let members = (0..<2_500).map { #""p\#(request)-\#($0)":1"# }.joined(separator: ",")
            let answer = client.post(
                "/track/v2/projects/{p}/customers",
                #"{"properties":{\#(members)},"customer_ids":{"cookie":"\#(cookie)"}}"#)
            #expect(answer.map(ShippedClient.outcome) == .success)
        }
        // The limit applies to the profile. The stored events have all properties.
        #expect(try client.events().count == 3)
        let kept = try client.fixture.place.connection(to: "events").first(
            "SELECT count(*), (SELECT max(properties) FROM customer) FROM customer_property"
        ) { [$0.int(0), $0.int(1)] }
        #expect(kept == [1_000, 1_000])
    }

    /// iOS SDK up to 3.6 sends the age of the event at each attempt.
    @Test func anEventsAgeIsSubtractedFromTheTimeOfReceipt() throws {
        let before = Date().timeIntervalSince1970
        let answer = client.post(
            "/track/v2/projects/{p}/customers/events",
            #"{"age":3600.2534,"event_type":"session_start","customer_ids":{"cookie":"\#(cookie)"},"properties":{"os_name":"iOS"}}"#
        )
        #expect(answer?.status == 200)
        let time = try #require(try client.events().first?[4].flatMap(Double.init)) / 1000
        #expect(time >= before - 3601 && time <= Date().timeIntervalSince1970 - 3600)
    }

    /// Android SDK 4.10 sends another content type and omits members that are null.
    @Test func anAndroidEventIsStored() throws {
        let body =
            #"{"event_type":"payment","timestamp":1.700000000456E9,"customer_ids":{"registered":"jane","cookie":"\#(cookie.lowercased())"},"properties":{"value":99.9}}"#
        let answer = try #require(
            client.post(
                "/track/v2/projects/{p}/customers/events", body,
                extra: [
                    "Content-Type": "application/json; charset=utf-8", "Accept-Encoding": "br,gzip",
                ]))
        #expect(answer.status == 200)
        #expect(answer.json["success"] as? Bool == true)
        #expect(
            try client.events() == [
                ["track", "jane", cookie.lowercased(), "payment", "1700000000456", body]
            ])
    }

    /// A click of the iOS SDK has ids and an event type. A click of the Android SDK has neither.
    @Test func aCampaignClickNeedsNoIDs() throws {
        let path = "/track/v2/projects/{p}/campaigns/clicks"
        let url = "https://shop.example/?utm_source=mail&xnpe_cmp=abc.def"
        let ios =
            #"{"customer_ids":{"cookie":"\#(cookie)"},"url":"\#(url)","properties":{"platform":"ios"},"event_type":"campaign_click","timestamp":1700000001.5}"#
        let android = #"{"url":"\#(url)","timestamp":1700000002.5,"properties":{"platform":"Android"}}"#
        for body in [ios, android] {
            #expect(client.post(path, body).map(ShippedClient.outcome) == .success)
        }
        #expect(
            try client.events().map { Array($0[..<5]) } == [
                ["track", nil, cookie, "campaign_click", "1700000001500"],
                ["track", nil, nil, "campaign_click", "1700000002500"],
            ])
        #expect(client.post(path, "{}").map(ShippedClient.outcome) != .success)
    }

    // MARK: Deduplication

    @Test func aRetryWithReorderedMembersAndMoreIDsIsADuplicate() throws {
        let path = "/track/v2/projects/{p}/customers/events"
        let first = client.post(
            path,
            #"{"customer_ids":{"cookie":"\#(cookie)"},"event_type":"e","properties":{"a":1,"b":[2]},"timestamp":1700000000.123}"#
        )
        let again = client.post(
            path,
            #"{"timestamp":1700000000.123,"properties":{"b":[2],"a":1},"event_type":"e","customer_ids":{"registered":"jane","cookie":"\#(cookie)"}}"#
        )
        #expect(first?.body == #"{"success":true,"errors":[]}"# + "\n")
        #expect(again?.body == #"{"success":true,"errors":[],"duplicate":true}"# + "\n")
        #expect(try client.events().count == 1)
    }

    @Test(arguments: [
        (#""timestamp":1700000000.124,"event_type":"e","properties":{"a":1}"#, "c"),
        (#""timestamp":1700000000.123,"event_type":"f","properties":{"a":1}"#, "c"),
        (#""timestamp":1700000000.123,"event_type":"e","properties":{"a":2}"#, "c"),
        (#""timestamp":1700000000.123,"event_type":"e","properties":{"a":1}"#, "d"),
    ])
    func anEventThatDiffersInOneMemberIsNotADuplicate(members: String, cookie: String) throws {
        let path = "/track/v2/projects/{p}/customers/events"
        let first = #""timestamp":1700000000.123,"event_type":"e","properties":{"a":1}"#
        _ = client.post(path, #"{"customer_ids":{"cookie":"c"},\#(first)}"#)
        _ = client.post(path, #"{"customer_ids":{"cookie":"\#(cookie)"},\#(members)}"#)
        #expect(try client.events().count == 2)
    }

    @Test func eventsWithoutDistinguishingMembersAreStoredEachTime() throws {
        let path = "/track/v2/projects/{p}/customers/events"
        for moment in [#","age":0"#, #","age":7"#, ""] {
            for _ in 0..<2 {
                _ = client.post(path, #"{"customer_ids":{"cookie":"c"},"event_type":"e"\#(moment)}"#)
            }
        }
        #expect(try client.events().count == 6)
        // Retries with an age in microseconds are deduplicated for ten minutes. A window may end between the posts.
        for _ in 0..<3 {
            _ = client.post(path, #"{"customer_ids":{"cookie":"c"},"event_type":"e","age":1.234567}"#)
        }
        #expect((7...8).contains(try client.events().count))
    }

    // MARK: Customers

    /// Reordered updates, and an update with a timestamp in the future before another.
    @Test(arguments: [
        [("Wien", "1700000002.0"), ("Brno", "1700000001.0")],
        [("Future", "4000000000"), ("Wien", "3999999999")],
    ])
    func updatesKeepTheValueWithTheLatestTimestampUpToNow(updates: [(city: String, time: String)]) throws {
        for (city, time) in updates {
            _ = client.post(
                "/track/v2/projects/{p}/customers",
                #"{"customer_ids":{"cookie":"\#(cookie)"},"properties":{"city":"\#(city)"},"timestamp":\#(time)}"#
            )
        }
        #expect(try properties("city")[0] as? String == "Wien")
    }

    @Test func anEventDoesNotSetProperties() throws {
        _ = client.post(
            "/track/v2/projects/{p}/customers/events",
            #"{"customer_ids":{"cookie":"\#(cookie)"},"event_type":"e","properties":{"city":"Wien"}}"#)
        #expect(try properties("city")[0] == nil)
    }

    // MARK: Rejections

    @Test(arguments: [
        ("customers", "", "empty"), ("customers", "[]", "JSON object"), ("customers", "{", "not JSON"),
        ("customers", "{}", "At least one id should be specified."),
        ("customers", #"{"customer_ids":{"cookie":""}}"#, "At least one id"),
        ("customers", #"{"customer_ids":["x"]}"#, "customer_ids must be"),
        ("customers", #"{"customer_ids":{"cookie":7.5}}"#, "values in customer_ids"),
        ("customers", #"{"customer_ids":{"":"x"}}"#, "names in customer_ids"),
        ("customers", #"{"customer_ids":{"cookie":"x"},"properties":[]}"#, "properties must be"),
        ("customers", #"{"customer_ids":{"cookie":"x"},"properties":{"":1}}"#, "names of properties"),
        ("customers", #"{"customer_ids":{"cookie":"x"},"message_id":[7]}"#, "message_id must be"),
        ("customers/events", #"{"customer_ids":{"cookie":"x"}}"#, "Field 'event_type' is required."),
        ("customers/events", #"{"customer_ids":{"cookie":"x"},"event_type":7}"#, "Field 'event_type'"),
        ("customers/events", #"{"event_type":"e"}"#, "At least one id should be specified."),
        ("campaigns/clicks", #"{"timestamp":1}"#, "Field 'url' is required."),
    ])
    func invalidTrackingRequestsAreRejectedWithAReason(path: String, body: String, says: String) throws {
        let answer = try #require(client.post("/track/v2/projects/{p}/" + path, body))
        #expect(answer.status == 400)
        guard case .missingData(let text) = ShippedClient.outcome(answer) else {
            Issue.record("the client would not show it")
            return
        }
        #expect(text.contains(says), "\(text)")
        #expect(answer.json["success"] as? Bool == false)
        #expect((answer.json["errors"] as? [String])?.count == 1)
        #expect(try client.events().isEmpty)
    }

    @Test func anEventHasAMaximumLength() throws {
        var limits = GatewayLimits()
        limits.eventBytes = 300
        let client = try BloomreachClient(limits: limits)
        func post(_ bytes: Int) -> TestAnswer? {
            let body = #"{"customer_ids":{"cookie":"C"},"event_type":"e","properties":{"x":""}}"#
            let padding = String(repeating: "x", count: bytes - body.utf8.count)
            return client.post(
                "/track/v2/projects/{p}/customers/events", String(body.dropLast(3)) + padding + #""}}"#)
        }
        #expect(post(301)?.status == 413)
        #expect(try client.events().isEmpty)
        #expect(post(300)?.status == 200)
    }

    @Test(arguments: [
        ("", 400), (String(repeating: "e", count: 256), 200), (String(repeating: "e", count: 257), 400),
    ])
    func theTypeOfAnEventHasAMaximumLength(type: String, status: Int) throws {
        let body = #"{"customer_ids":{"cookie":"C"},"event_type":"\#(type)","properties":{}}"#
        #expect(client.post("/track/v2/projects/{p}/customers/events", body)?.status == status)
    }

    // MARK: Authorization

    @Test func theAPIKeyMustBeTheProjects() throws {
        let other = try client.fixture.apps.createApp(id: "other").writeKey
        try client.fixture.gateway.refreshApps()
        let body = #"{"customer_ids":{"cookie":"x"}}"#
        for authorization in [
            "Token wk_nobody", "Token \(other)", "Token ", "Basic \(client.fixture.writeKey)", "Bearer x",
            client.fixture.writeKey,
        ] {
            let answer = try #require(
                client.post("/track/v2/projects/{p}/customers", body, authorization: authorization))
            #expect(answer.status == 401, "\(authorization.prefix(6))")
            guard case .notAuthorized(let error?) = ShippedClient.outcome(answer) else {
                Issue.record("the client cannot decode the error")
                continue
            }
            #expect(!error.isEmpty)
            #expect(answer.headers["www-authenticate"] != nil)
        }
        #expect(
            client.connection.post(body, path: "/track/v2/projects/\(client.project)/customers")?.status
                == 401)
        #expect(try client.events().isEmpty)
    }

    @Test func anUnknownProjectAndAnUnknownPathAreDistinguished() throws {
        let body = #"{"customer_ids":{"cookie":"x"}}"#
        let project = try #require(client.post("/track/v2/projects/nobody/customers", body))
        #expect(project.status == 400)
        #expect(project.json["error"] as? String == "Invalid project id")
        let path = try #require(client.post("/track/v2/projects/{p}/nothing", body))
        #expect(ShippedClient.outcome(path) != .notFound(nil))
        guard case .notFound = ShippedClient.outcome(path) else {
            Issue.record("no 404")
            return
        }
        let method = try #require(client.get("/track/v2/projects/{p}/customers"))
        #expect(method.status == 405)
        #expect(method.headers["allow"] == "POST")
        #expect(method.json["errors"] as? [String] != nil)
        // Once another project token is set, the app's id is no longer accepted.
        #expect(client.post("/track/v2/projects/shop/customers", body)?.status == 400)
    }

    @Test func whereTokensAreRequiredAnIdentifiedCustomerNeedsOne() throws {
        try client.edit { try $0.setEnforcement(.required, for: "shop") }
        let path = "/track/v2/projects/{p}/customers"
        let body = #"{"customer_ids":{"cookie":"x","registered":"jane"},"properties":{"a":1}}"#
        let failed = try #require(client.post(path, body))
        #expect(ShippedClient.outcome(failed) != .notAuthorized(nil))
        #expect(failed.authErrorCode == 26)
        let foreign = try client.fixture.token(for: "john")
        #expect(client.post(path, body, extra: ["X-Countersign-Signature": foreign])?.status == 401)
        #expect(
            client.post(path, #"{"customer_ids":{"email":"jane@example.com"}}"#)?.status == 401)
        let token = try client.fixture.token(for: "jane")
        #expect(client.post(path, body, extra: ["X-Countersign-Signature": token])?.status == 200)
        #expect(client.post(path, #"{"customer_ids":{"cookie":"y"}}"#)?.status == 200)
        // A cookie alone does not give access to the profile that it belongs to.
        let read = client.post(
            "/data/v2/projects/{p}/customers/attributes",
            #"{"customer_ids":{"cookie":"x"},"attributes":[{"type":"property","property":"a"}]}"#)
        #expect((read?.json["results"] as? [[String: Any]])?.first?["success"] as? Bool == false)
    }

    @Test func withOptionalTokensAMissingTokenIsAWarning() throws {
        try client.edit { try $0.setEnforcement(.optional, for: "shop") }
        let answer = client.post(
            "/track/v2/projects/{p}/customers", #"{"customer_ids":{"registered":"jane"}}"#)
        #expect(answer?.status == 200)
        #expect((answer?.json["auth_warning"] as? [String: Any])?["error_code"] as? Int == 26)
    }

    // MARK: Unavailable storage

    @Test func a503DoesNotUseUpClientRetries() throws {
        // Shipped clients count a 5xx as an attempt if they can decode its body.
        let rejection = try #require(try unavailable())
        #expect(rejection.status == 503)
        #expect(ShippedClient.outcome(rejection) == .serverError(nil))
        #expect(rejection.headers["retry-after"] != nil)
        #expect(rejection.json["success"] as? Bool == false)
    }

    /// The answer of a gateway whose storage accepts no pending bytes.
    private func unavailable() throws -> TestAnswer? {
        var limits = GatewayLimits()
        limits.pendingBytes = 0
        let fixture = try GatewayFixture(.standard, enforcement: .disabled, limits: limits)
        return try fixture.client().post(
            #"{"customer_ids":{"cookie":"x"}}"#, path: "/track/v2/projects/shop/customers",
            headers: ["Authorization": "Token \(fixture.writeKey)"])
    }
}
