import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayHTTP
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayIngest

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct BloomreachContentTests {
    private let client: BloomreachClient

    init() throws {
        client = try BloomreachClient()
    }

    private let attributes = "/data/v2/projects/{p}/customers/attributes"
    private let ids = #""customer_ids":{"cookie":"C","registered":"jane"}"#

    // MARK: Attributes

    @Test func attributeResultsKeepTheirOrderAndOnlyUnknownOnesFail() throws {
        _ = client.post(
            "/track/v2/projects/{p}/customers",
            #"{\#(ids),"properties":{"city":"Brno"},"timestamp":1700000000}"#)
        let answer = try #require(
            client.post(
                attributes,
                #"{\#(ids),"attributes":[{"type":"property","property":"city"},{"type":"id","id":"registered"},{"type":"segmentation","id":"s"},{"type":"id","id":"cookie"},{"type":"id","id":"other"},{"type":"property"},{"id":"x"},7]}"#,
                extra: ["X-Countersign-Signature": try client.fixture.token(for: "jane")]))
        #expect(answer.status == 200)
        #expect(answer.json["success"] as? Bool == true)
        let results = try #require(answer.json["results"] as? [[String: Any]])
        #expect(
            results.map { $0["success"] as? Bool } == [true, true, false, true, true, false, false, false])
        #expect(results[0]["value"] as? String == "Brno")
        #expect(results[1]["value"] as? String == "jane")
        #expect((results[2]["error"] as? String)?.contains("segmentation") == true)
        #expect(results[3]["value"] as? String == "C")
        #expect(results[4]["value"] is NSNull)
    }

    @Test func attributeResponsesHaveASizeLimit() throws {
        let text = String(repeating: "x", count: 300_000)
        _ = client.post(
            "/track/v2/projects/{p}/customers",
            #"{\#(ids),"properties":{"a":"\#(text)"},"timestamp":1700000000}"#)
        let wanted = Array(repeating: #"{"type":"property","property":"a"}"#, count: 100)
        let answer = try #require(
            client.post(
                attributes, #"{\#(ids),"attributes":[\#(wanted.joined(separator: ","))]}"#,
                extra: ["X-Countersign-Signature": try client.fixture.token(for: "jane")]))
        let results = try #require(answer.json["results"] as? [[String: Any]])
        #expect(
            results.map { $0["success"] as? Bool } == [true, true, true, true]
                + Array(repeating: false, count: 96))
    }

    @Test(arguments: [
        #"{"attributes":[]}"#, #"{"customer_ids":{"cookie":"C"}}"#,
        #"{"customer_ids":{"cookie":"C"},"attributes":{}}"#, "no",
    ])
    func invalidAttributeRequestsAreRejected(body: String) throws {
        let answer = try #require(client.post(attributes, body))
        #expect(answer.status == 400)
        #expect(answer.json["success"] as? Bool == false)
    }

    // MARK: Consents

    @Test func consentsAreAnsweredToGETAndPOST() throws {
        let path = "/data/v2/projects/{p}/consent/categories"
        let empty = try ShippedClient.decode(ShippedClient.Consents.self, client.get(path))
        #expect(empty.success && empty.results.isEmpty)
        try client.edit {
            try $0.projects.put(
                .consentCategory,
                json:
                    #"{"id":"mail","legitimate_interest":true,"sources":{"crm":true,"list_unsubscribe":true},"translations":{"":{"name":"Mail","description":null},"de":null}}"#,
                in: "shop")
        }
        for answer in [client.get(path), client.post(path, ""), client.post(path, "{}")] {
            #expect(answer?.status == 200)
            let consents = try ShippedClient.decode(ShippedClient.Consents.self, answer)
            let category = try #require(consents.results.first)
            #expect(category.id == "mail")
            #expect(category.legitimate_interest)
            #expect(category.sources.crm && !category.sources.page)
            #expect(category.translations[""]??.name == "Mail")
        }
        #expect(client.get(path, authorization: "Token x")?.status == 401)
    }

    // MARK: In-app messages

    @Test func inAppMessagesAreDecodedByOldAndNewClients() throws {
        let body = #"{"customer_ids":{"cookie":"C"},"device":"ios"}"#
        let path = "/webxp/s/{p}/inappmessages"
        let empty = try ShippedClient.decode(
            ShippedClient.InAppMessages.self, client.post(path + "?v=1", body))
        #expect(empty.success)
        #expect(empty.data?.isEmpty == true)
        try client.edit {
            try $0.projects.put(
                .inAppMessage,
                json:
                    #"{"id":"m1","message_type":"modal","frequency":"only_once","payload":{"title":"Hi","buttons":[]},"load_delay":500,"trigger":{"event_type":"session_start","filter":[{"attribute":{"type":"property","property":"os_name"},"constraint":{"type":"string","operator":"equals","operands":[{"type":"constant","value":"iOS"}]}}]},"date_filter":{"enabled":true,"from_date":1700000000,"to_date":null}}"#,
                in: "shop")
            try $0.projects.put(
                .inAppMessage,
                json: #"{"id":"m2","is_rich_text":true,"payload":{},"trigger":{"event_type":"payment"}}"#,
                in: "shop")
        }
        let new = try ShippedClient.decode(
            ShippedClient.InAppMessages.self, client.post(path + "?compatibility=3", body))
        #expect(new.data?.map(\.id) == ["m1", "m2"])
        let message = try #require(new.data?.first)
        #expect(message.name == "m1")
        #expect(message.trigger.filter.first?.constraint.operator == "equals")
        #expect(message.date_filter.enabled)
        #expect(message.date_filter.from_date == 1_700_000_000)
        #expect(message.load_delay == 500)
        for query in ["?v=1", "", "?compatibility=x", "?compatibility=2"] {
            let old = try ShippedClient.decode(
                ShippedClient.InAppMessages.self, client.post(path + query, body))
            #expect(old.data?.map(\.id) == ["m1"], "\(query)")
        }
        let android = client.post(
            path + "?compatibility=3&x=%zz", #"{"customer_ids":{"cookie":"C"},"device":"android"}"#)
        #expect(android?.json["success"] as? Bool == true)
        #expect(client.post(path + "?v=1", "[]")?.status == 400)
        #expect(client.post(path + "?v=1", body, authorization: "Bearer x")?.status == 401)
    }

    @Test func inAppMessagesFollowChangesByAnOperator() throws {
        let body = #"{"customer_ids":{"cookie":"C"},"device":"ios"}"#
        try client.edit {
            try $0.projects.put(.inAppMessage, json: #"{"id":"m","trigger":{"event_type":"x"}}"#, in: "shop")
        }
        #expect(client.post("/webxp/s/{p}/inappmessages?v=1", body)?.body.contains(#""id":"m""#) == true)
        try client.edit { try $0.projects.remove(.inAppMessage, id: "m", from: "shop") }
        #expect(client.post("/webxp/s/{p}/inappmessages?v=1", body)?.body.contains(#""id":"m""#) == false)
    }

    // MARK: Other endpoints

    @Test func resourcesFetchedAtStartAreValidAndEmpty() throws {
        struct List: Decodable {
            let success: Bool
            let data: [String]
        }
        for path in ["bundle-ios.json?v=2", "bundle-android.json?v=2"] {
            let list = try ShippedClient.decode(List.self, client.get("/wxstatic/projects/{p}/" + path))
            #expect(list.success && list.data.isEmpty)
        }
        let blocks = try ShippedClient.decode(
            List.self,
            client.post(
                "/webxp/s/{p}/inappcontentblocks?v=2",
                #"{"content_block_ids":["b"],"customer_ids":{"cookie":"C"}}"#))
        #expect(blocks.success && blocks.data.isEmpty)
        let segments = client.get("/webxp/projects/{p}/segments?cookie=1B0B6A6F")
        #expect(segments?.body == "{}\n")
        let link = client.post(
            "/webxp/projects/{p}/cookies/1B0B6A6F/link-ids", #"{"external_ids":{"registered":"jane"}}"#)
        #expect(link?.status == 200)
        for path in ["/wxstatic/projects/{p}/bundle-ios.json", "/webxp/projects/{p}/segments"] {
            #expect(client.get(path, authorization: "Token x")?.status == 401)
            #expect(client.get(path, authorization: "Bearer x")?.status == 401)
        }
    }

    // MARK: Authorization

    @Test func whereTokensAreRequiredAnIdentifiedCustomerNeedsOneEverywhere() throws {
        try client.edit { try $0.setEnforcement(.required, for: "shop") }
        let bodies = [
            (attributes, #"{\#(ids),"attributes":[{"type":"id","id":"cookie"}]}"#),
            ("/webxp/s/{p}/inappmessages?v=1", #"{\#(ids),"device":"ios"}"#),
            (
                "/campaigns/send-self-check-notification?project_id={p}",
                #"{\#(ids),"platform":"ios","push_notification_id":"x"}"#
            ),
            ("/webxp/projects/{p}/appinbox/markasread", #"{\#(ids),"message_ids":[]}"#),
        ]
        for (path, body) in bodies {
            #expect(client.post(path, body)?.status == 401, "\(path)")
            let token = try client.fixture.token(for: "jane")
            #expect(
                client.post(path, body, extra: ["X-Countersign-Signature": token])?.status != 401, "\(path)")
        }
    }

    @Test func aRateLimitResponseDoesNotUseUpClientRetries() throws {
        var limits = GatewayLimits()
        limits.requestsPerSecondPerApp = 1
        let limited = try BloomreachClient(limits: limits)
        let body = #"{"customer_ids":{"cookie":"C"}}"#
        let answers = (0..<40).lazy.compactMap { _ in limited.post("/track/v2/projects/{p}/customers", body) }
        let rejection = try #require(answers.first { $0.status != 200 })
        #expect(rejection.status == 503)
        #expect(ShippedClient.outcome(rejection) == .serverError(nil))
        #expect(rejection.headers["retry-after"] != nil)
        #expect(rejection.headers["content-type"] == "application/json")
    }

    @Test func aFailedReadOfACustomerHasAReason() {
        let request = HTTPRequest(method: "POST", path: "/", receivedMilliseconds: 1)
        let busy = BloomreachAnswer.unreadable(StoreFailure(reason: .overloaded, detail: ""), request)
        #expect(busy.status == 503 && busy.code == "overloaded")
        #expect(busy.headers.contains { $0 == ("Retry-After", "1") })
        #expect(!String(decoding: busy.body, as: UTF8.self).contains("storage"))
        let broken = BloomreachAnswer.unreadable(StoreFailure(reason: .failed, detail: ""), request)
        #expect(broken.status == 503 && broken.code == "storage_unavailable")
        #expect(broken.headers.contains { $0 == ("Retry-After", "5") })
    }
}
