import CountersignGateway
import CountersignGatewayTesting
import GatewayModel
import GatewayTestSupport
import Testing

/// Requests as Braze's Web SDK sends them from a page. Headers and the order of members come from a
/// published capture of version 2.4.3; names and ids are replaced.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct BrazeWebClientTests {
    private static let origin = "https://shop.example"
    private let fixture: GatewayFixture
    private let connection: any TestClient

    init() throws {
        fixture = try GatewayFixture(.standard, enforcement: .required)
        var rules = AppRules()
        rules.origins = [Self.origin]
        try fixture.edit { try $0.setRules(rules, of: "shop") }
        connection = try fixture.client()
    }

    private func post(_ body: String, token: String? = nil) -> TestAnswer? {
        var headers = [
            "Content-Type": "application/json", "Origin": Self.origin, "Referer": Self.origin + "/",
            "Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "cross-site",
            "X-Braze-Api-Key": fixture.writeKey, "X-Braze-DataRequest": "true",
            "X-Braze-TriggersRequest": "true", "X-Requested-With": "XMLHttpRequest",
        ]
        headers["X-Braze-Auth-Signature"] = token
        return connection.post(body, path: "/api/v3/data/", headers: headers)
    }

    private func body(_ events: String, user: String? = nil) -> String {
        let user = user.map { #","user_id":"\#($0)""# } ?? ""
        return """
            {"respond_with":{"triggers":true,"config":{"config_time":0}\(user)},"events":[\(events)],
            "device":{"browser":"Chrome","browser_version":"140.0.7339.80","os_version":"Linux","resolution":"2048x1152",
            "locale":"en-us","time_zone":"Europe/Ljubljana","user_agent":"Mozilla/5.0 (X11; Linux x86_64)"},
            "api_key":"\(fixture.writeKey)","time":1795249800,"sdk_version":"2.4.3",
            "device_id":"5f1c44be-30f0-4d50-9a3e-0d6f5f0c1a11"}
            """
    }

    private func stored() throws -> [[String?]] {
        try fixture.rows("user_id", "anonymous_id", "name", where: "type = 'track'")
    }

    @Test func aVisitorsSessionIsStoredAndTheResponseHasCORSHeaders() throws {
        let preflight = [
            "Origin": Self.origin, "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers":
                "content-type,x-braze-api-key,x-braze-datarequest,x-braze-triggersrequest,x-requested-with",
        ]
        #expect(connection.send("OPTIONS", "/api/v3/data/", preflight, nil)?.status == 204)
        let session =
            #"{"name":"ss","time":1795249799.874,"data":{},"session_id":"0c3e1d9e-5d3f-4a57-8f57-3c7d4b5a9f10"}"#
        let answer = post(body(session))
        #expect(answer?.status == 201)
        #expect(answer?.headers["access-control-allow-origin"] == Self.origin)
        #expect(answer?.json["message"] as? String == "success")
        #expect(try stored() == [[nil, "5f1c44be-30f0-4d50-9a3e-0d6f5f0c1a11", "ss"]])
    }

    @Test func aUsersEventNeedsASignatureAndItsRejectionHasCORSHeaders() throws {
        let event =
            #"{"name":"ce","time":1795249800.1,"data":{"n":"Order Placed","p":{"total":12.5}},"user_id":"user-1","#
            + #""session_id":"0c3e1d9e-5d3f-4a57-8f57-3c7d4b5a9f10"}"#
        let failed = post(body(event, user: "user-1"))
        #expect(failed?.status == 401)
        #expect(failed?.headers["access-control-allow-origin"] == Self.origin)
        #expect(failed?.authErrorCode == 26)
        #expect(post(body(event, user: "user-1"), token: try fixture.token(for: "user-1"))?.status == 201)
        #expect(try stored() == [["user-1", "5f1c44be-30f0-4d50-9a3e-0d6f5f0c1a11", "Order Placed"]])
    }
}
