import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayIngest
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct GeolocationDialectTests {
    private let fixture: GatewayFixture
    private let connection: any TestClient

    init() throws {
        fixture = try GatewayFixture(.standard, enforcement: .disabled)
        connection = try fixture.client()
    }

    private func token(app: JSONValue = "shop") throws -> String {
        try fixture.signingKey.sign(claims: [
            "sub": "device-1", "aud": app, "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
        ])
    }

    private func post(_ body: String, authorization: String?, path: String = "/api/locations")
        -> TestAnswer?
    {
        connection.post(body, path: path, headers: authorization.map { ["Authorization": $0] } ?? [:])
    }

    private func rows() throws -> [[String?]] {
        try fixture.rows("message_id", "type", "user_id", "timestamp_ms", "body")
    }

    // The shapes of the vendor's HttpConfig: one record or a batch, with or without a root property.
    private static let record =
        #"{"uuid":"u-1","timestamp":"2015-05-05T04:31:54.123Z","coords":{"latitude":45.5,"longitude":-73.5},"extras":{}}"#

    @Test(arguments: [
        (#"{"location":\#(record),"device":"x"}"#, #"{"device":"x"}"#), (#"{"location":[\#(record)]}"#, "{}"),
        (#"{"data":[\#(record)],"a":[1, 2]}"#, #"{"a":[1, 2]}"#), (record, "{}"), ("[\(record)]", "{}"),
        (#"[{"location":\#(record)}]"#, "{}"),
        (#"[{"location":\#(record),"device":"x"}]"#, #"{"device":"x"}"#),
    ])
    func everyShapeOfAnUploadIsStored(body: String, params: String) throws {
        let answer = try #require(post(body, authorization: "Bearer " + token()))
        #expect(answer.status == 200)
        #expect(answer.json["success"] as? Bool == true)
        #expect(
            try rows() == [
                [
                    "u-1", "location", "device-1", "1430800314123",
                    #"{"location":\#(Self.record),"params":\#(params)}"#,
                ]
            ])
    }

    /// The status is 200, because the vendor's SDK retries a record forever unless the status is 2xx.
    @Test func anUploadWithOnlyRejectedRecordsReportsNoSuccess() throws {
        let authorization = "Bearer " + (try token())
        let bad = #"{"uuid":true,"coords":7}"#
        let answer = try #require(post(#"{"location":[\#(bad),\#(bad)]}"#, authorization: authorization))
        #expect(answer.status == 200)
        #expect(answer.json["success"] as? Bool == false)
        #expect(answer.json["code"] as? String == "all_events_rejected")
        #expect((answer.json["rejected"] as? [Any])?.count == 2)
        let mixed = #"{"location":[\#(bad),\#(Self.record)]}"#
        let other = try #require(post(mixed, authorization: authorization))
        #expect(other.status == 200)
        #expect(other.json["success"] as? Bool == true)
        #expect(other.json["code"] == nil)
    }

    @Test func recordsOfALocationTemplateAreStored() throws {
        let body = #"{"location":[{"lat":1,"lng":2,"time":1430800314123},{"lat":3,"lng":4}]}"#
        #expect(post(body, authorization: "Bearer " + (try token()))?.json["accepted"] as? Int == 2)
        #expect(post(body, authorization: "Bearer " + (try token()))?.json["duplicates"] as? Int == 2)
    }

    @Test func aTokenWithoutBearerAndAnAppInThePathAreAccepted() throws {
        #expect(post(Self.record, authorization: try token(app: ["x", "shop"]))?.status == 200)
        let unnamed = try fixture.token(for: "device-1")
        let unknown = post(Self.record, authorization: "Bearer \(unnamed)")
        #expect(unknown?.json["code"] as? String == "unknown_app")
        #expect(unknown?.status == 401 && unknown?.headers["www-authenticate"] == "Bearer")
        #expect(
            post(Self.record, authorization: "Bearer \(unnamed)", path: "/api/locations/shop")?.status == 200)
    }

    /// Without a user, the token cannot be assigned to anyone. All dialects use the same code.
    @Test(arguments: [nil, ""]) func aTokenWithoutASubjectIsASubjectMismatch(subject: String?) throws {
        var claims: JSONObject = [
            "aud": "shop", "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
        ]
        claims["sub"] = subject.map { JSONValue.string($0) }
        let answer = post(Self.record, authorization: try fixture.signingKey.sign(claims: claims))
        #expect(answer?.status == 401)
        #expect(answer?.json["code"] as? String == "SUBJECT_MISMATCH")
        let error = answer?.json["auth_error"] as? [String: Any]
        #expect((error?["faults"] as? [[String: Any]])?.map { $0["error_code"] as? Int } == [21])
        fixture.gateway.analytics.flush()
        let sample = try #require(
            fixture.place.open().analytics.samples(
                of: "shop", requestID: nil, code: .subjectMismatch, from: 0, to: .max, before: nil, limit: 9
            ).first)
        #expect(fixture.gateway.sampleVerifier.again(sample)?.code == .subjectMismatch)
    }

    @Test func theAudienceIsTheAppsIDOrItsProjectToken() throws {
        try fixture.edit { try $0.setProjectToken("shop-project", for: "shop") }
        for name in ["shop", "shop-project"] {
            #expect(
                post(Self.record, authorization: try token(app: ["x", .string(name)]))?.status == 200,
                "\(name)")
        }
    }

    @Test func invalidLocationBodiesAreRejectedWithACode() throws {
        let authorization = "Bearer " + (try token())
        #expect(post("5", authorization: authorization)?.json["code"] as? String == "invalid_batch")
        #expect(post("{", authorization: authorization)?.json["code"] as? String == "invalid_json")
        let answer = post(#"{"location":[5,\#(Self.record)]}"#, authorization: authorization)
        #expect(answer?.status == 200)
        #expect(try rows().count == 1)
        for body in [#"{"location":"x"}"#, #"{"location":5}"#, "[5]", "[null,true]"] {
            #expect(
                post(body, authorization: authorization)?.json["code"] as? String == "all_events_rejected",
                "\(body)")
        }
        #expect(try rows().count == 1)
    }
}
