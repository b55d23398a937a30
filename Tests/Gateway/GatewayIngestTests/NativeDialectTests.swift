import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct NativeDialectTests {
    private let fixture: GatewayFixture
    private let connection: any TestClient

    init() throws {
        fixture = try GatewayFixture(.standard)
        connection = try fixture.client()
    }

    private func signed(_ user: String = "user-1") throws -> [String: String] {
        ["X-Write-Key": fixture.writeKey, "Authorization": "Bearer " + (try fixture.token(for: user))]
    }

    /// Changes enforcement in the running gateway, as another process would.
    private func enforce(_ enforcement: Enforcement) throws {
        try fixture.edit { try $0.setEnforcement(enforcement, for: fixture.appID) }
    }

    private func stored() throws -> [String] {
        try fixture.rows("message_id").compactMap(\.[0])
    }

    @Test func aSignedEventIsOnDiskBeforeTheResponse() throws {
        let event = trackEvent(
            "m-1", extra: #","timestamp":"2026-11-21T08:30:00.250Z","properties":{"total":12.50}"#)
        let answer = try #require(connection.post(batch(event), headers: signed()))
        #expect(answer.status == 200)
        #expect(answer.body == #"{"success":true,"accepted":1,"duplicates":0,"rejected":[]}"# + "\n")
        #expect(answer.headers["x-request-id"]?.isEmpty == false)
        let rows = try fixture.rows(
            "app_id", "message_id", "type", "user_id", "anonymous_id", "name", "timestamp_ms", "body")
        #expect(rows == [["shop", "m-1", "track", "user-1", nil, "Order Placed", "1795249800250", event]])
    }

    @Test func theSameMessageIsStoredOnce() throws {
        _ = connection.post(batch(trackEvent("m-1"), trackEvent("m-2")), headers: try signed())
        let answer = try #require(
            connection.post(batch(trackEvent("m-2"), trackEvent("m-3"), trackEvent("m-3")), headers: signed())
        )
        #expect(answer.body == #"{"success":true,"accepted":1,"duplicates":2,"rejected":[]}"# + "\n")
        #expect(try stored() == ["m-1", "m-2", "m-3"])
    }

    @Test func onlyInvalidEventsOfABatchAreRejectedWithAReason() throws {
        let answer = try #require(
            connection.post(
                batch(
                    trackEvent("m-1"), #"{"type":"dance","userId":"user-1"}"#,
                    #"{"type":"track","event":"x"}"#, "5",
                    #"{"type":"track","userId":"user-1"}"#, #"{"type":"identify","userId":7.0}"#,
                    #"{"type":"identify","userId":true}"#,
                    trackEvent("", extra: #","traits":[]"#),
                    #"{"type":"identify","userId":"user-1","messageId":"m-9"}"#,
                    #"{"type":"identify","userId":"user-1","messageId":[9]}"#,
                    #"{"type":"identify","userId":"user-1","anonymousId":1e3}"#), headers: signed()))
        #expect(answer.status == 200)
        let rejected = try #require(answer.json["rejected"] as? [[String: Any]])
        #expect(rejected.map { $0["index"] as? Int } == [1, 2, 3, 4, 5, 6, 7, 9, 10])
        #expect(
            rejected.map { $0["code"] as? String } == [
                "unsupported_type", "missing_user", "invalid_event", "invalid_event", "invalid_event",
                "invalid_event", "invalid_event", "invalid_event", "invalid_event",
            ])
        #expect(rejected.allSatisfy { ($0["reason"] as? String)?.isEmpty == false })
        #expect(try stored() == ["m-1", "m-9"])
    }

    @Test func anInvalidBodyIsRejectedWithItsCode() throws {
        for (body, code) in [
            ("", "invalid_json"), ("not json", "invalid_json"), ("[]", "invalid_batch"),
            (#"{"batch":[],"batch":[]}"#, "invalid_json"), (#"{"batch":{}}"#, "invalid_batch"),
            (#"{"writeKey":7,"batch":[]}"#, "invalid_batch"),
            (String(repeating: "[", count: 10_000), "invalid_json"),
        ] {
            let answer = try #require(connection.post(body, headers: signed()))
            #expect(answer.status == 400, "\(body.prefix(40))")
            #expect(answer.json["code"] as? String == code, "\(body.prefix(40))")
            #expect(answer.json["success"] as? Bool == false)
        }
        #expect(connection.get("/livez")?.status == 200)
    }

    @Test func theWriteKeyIsReadFromHeaderBasicAuthAndBody() throws {
        let token = try fixture.token(for: "user-1")
        let basic = Data((fixture.writeKey + ":").utf8).base64EncodedString()
        #expect(
            connection.post(
                batch(trackEvent("m-1")),
                headers: ["Authorization": "Basic \(basic)", "X-Countersign-Signature": token])?.status == 200
        )
        #expect(
            connection.post(
                #"{"writeKey":"\#(fixture.writeKey)","batch":[\#(trackEvent("m-2"))]}"#,
                headers: ["Authorization": "Bearer \(token)"])?.status == 200)
        #expect(try stored() == ["m-1", "m-2"])
    }

    @Test func anUnknownWriteKeyGets401WithoutATokenError() throws {
        for headers in [[:], ["X-Write-Key": "wk_nobody"], ["Authorization": "Basic Og=="]] {
            let answer = try #require(connection.post(batch(trackEvent("m-1")), headers: headers))
            #expect(answer.status == 401 && answer.headers["www-authenticate"]?.hasPrefix("Basic ") == true)
            #expect(answer.json["code"] as? String == "invalid_write_key")
            #expect(answer.json["auth_error"] == nil)
        }
        let unread = connection.post("{", headers: ["X-Write-Key": "wk_nobody"])
        #expect(unread?.json["code"] as? String == "invalid_write_key", "the body is not read")
        for body in [#"{"writeKey":"wk_nobody","batch":{}}"#, #"{"batch":{}}"#] {
            let undecoded = connection.post(body, headers: [:])
            #expect(undecoded?.json["code"] as? String == "invalid_write_key", "events are not decoded")
        }
    }

    @Test func unknownAndDifferentCredentialsAreRejected() throws {
        let unknown = connection.post("{", headers: ["Authorization": "Digest a"])
        #expect(unknown?.json["code"] as? String == "invalid_credentials")
        var headers = try signed()
        headers["X-Countersign-Signature"] = "other"
        #expect(
            connection.post(batch(trackEvent("m-1")), headers: headers)?.json["code"] as? String
                == "invalid_credentials")
        let basic = Data("other:".utf8).base64EncodedString()
        #expect(
            connection.post(
                batch(trackEvent("m-1")),
                headers: ["X-Write-Key": fixture.writeKey, "Authorization": "Basic \(basic)"])?
                .status == 400)
        #expect(try stored() == [])
    }

    @Test func aTokenOfOneUserIsRejectedInARequestOfTwoUsers() throws {
        let two = batch(trackEvent("m"), trackEvent("n", user: "user-2"))
        let answer = try #require(connection.post(two, headers: signed()))
        #expect(answer.status == 401)
        let error = try #require(answer.json["auth_error"] as? [String: Any])
        #expect(error["error_code"] as? Int == 28)
        #expect((error["reason"] as? String)?.isEmpty == false)
        #expect(error["enforcement"] as? String == "required")
        #expect(answer.headers["www-authenticate"]?.hasPrefix(#"Bearer error="invalid_token""#) == true)
        #expect(try stored() == [])
    }

    @Test func optionalEnforcementStoresTheEventAndWarns() throws {
        try enforce(.optional)
        let answer = try #require(
            connection.post(batch(trackEvent("m-1")), headers: ["X-Write-Key": fixture.writeKey]))
        #expect(answer.status == 200)
        #expect(answer.json["accepted"] as? Int == 1)
        let warning = try #require(answer.json["auth_warning"] as? [String: Any])
        #expect(warning["error_code"] as? Int == 26)
        #expect(warning["optional"] as? Bool == true)
    }

    @Test func aRequestWithOnlyInvalidEventsIsRejected() throws {
        let bad = #"{"type":"track","userId":"user-1"}"#
        let answer = try #require(connection.post(batch(bad, bad), headers: signed()))
        #expect(answer.status == 400)
        #expect(answer.json["success"] as? Bool == false)
        #expect(answer.json["code"] as? String == "all_events_rejected")
        #expect(answer.json["accepted"] as? Int == 0)
        let rejected = try #require(answer.json["rejected"] as? [[String: Any]])
        #expect(rejected.map { $0["code"] as? String } == ["invalid_event", "invalid_event"])
        // A duplicate event or an empty batch is not a failure.
        _ = connection.post(batch(trackEvent("m-1")), headers: try signed())
        #expect(try connection.post(batch(bad, trackEvent("m-1")), headers: signed())?.status == 200)
        #expect(try connection.post(batch(), headers: signed())?.status == 200)
    }

    @Test func disabledEnforcementIgnoresTheToken() throws {
        try enforce(.disabled)
        let answer = try #require(
            connection.post(
                batch(trackEvent("m-1")),
                headers: ["X-Write-Key": fixture.writeKey, "Authorization": "Bearer x"]))
        #expect(answer.body == #"{"success":true,"accepted":1,"duplicates":0,"rejected":[]}"# + "\n")
    }

    @Test func aSingleEventIsAcceptedAtTheEndpointOfItsType() throws {
        let body = #" {"event":"Signed Up","userId":"user-1","messageId":"m-1"} "#
        #expect(connection.post(body, path: "/v1/track", headers: try signed())?.status == 200)
        #expect(
            try fixture.rows("type", "name", "body")
                == [["track", "Signed Up", body.trimmingCharacters(in: .whitespaces)]])
    }
}
