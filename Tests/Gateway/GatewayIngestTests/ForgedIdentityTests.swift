import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

/// Requests with a valid write key, some with a valid token, that claim the identity of another user.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct ForgedIdentityTests {
    private let fixture: GatewayFixture
    private let connection: any TestClient

    init() throws {
        fixture = try GatewayFixture(.standard)
        connection = try fixture.client()
    }

    private func post(
        _ body: String, path: String = "/v1/batch", as user: String? = nil
    ) throws -> TestAnswer {
        var headers = ["X-Write-Key": fixture.writeKey]
        if let user { headers["Authorization"] = "Bearer " + (try fixture.token(for: user)) }
        return try #require(connection.post(body, path: path, headers: headers))
    }

    private func ramp(_ percent: Int) throws {
        var plan = EnforcementPlan()
        plan.state = .required
        plan.rampPercent = percent
        try fixture.edit { try $0.setEnforcementPlan(plan, for: fixture.appID) }
    }

    private func stored() throws -> Int {
        try fixture.rows("1").count
    }

    // MARK: Enforcement for a share of users

    private func users(inside: Bool, of percent: Int, count: Int) -> [String] {
        Array(
            (0..<1_000).lazy.map { "user-\($0)" }
                .filter { EnforcementPlan.isRamped($0, of: "shop", percent: percent) == inside }.prefix(count)
        )
    }

    @Test func aUserOutsideTheRampDoesNotExemptOthersOfTheBatch() throws {
        try ramp(50)
        let outside = users(inside: false, of: 50, count: 2)
        let inside = users(inside: true, of: 50, count: 1)
        let forged = (0..<5).map { trackEvent("f-\($0)", user: inside[0]) }
        for first in outside {
            let body = #"{"batch":[\#(([trackEvent("m", user: first)] + forged).joined(separator: ","))]}"#
            let answer = try post(body)
            #expect(answer.status == 401)
            #expect(answer.authErrorCode == 26)
            // A valid token of the user outside the ramp does not help either.
            #expect(try post(body, as: first).authErrorCode == 28)
        }
        // Several users in one batch are rejected even if all of them are outside the ramp.
        let two = try post(
            batch(trackEvent("a", user: outside[0]), trackEvent("b", user: outside[1])), as: outside[0])
        #expect(two.authErrorCode == 28)
        #expect(try stored() == 0)
        #expect(try post(batch(trackEvent("c", user: outside[0]))).status == 200)
        #expect(try stored() == 1)
    }

    @Test func aUserOutsideTheRampDoesNotExemptOthersInABrazeRequest() throws {
        try ramp(50)
        let outside = users(inside: false, of: 50, count: 1)[0]
        let victim = users(inside: true, of: 50, count: 1)[0]
        for body in [
            #"{"user_id":"\#(outside)","events":[{"name":"ce","user_id":"\#(victim)"}]}"#,
            #"{"respond_with":{"user_id":"\#(outside)"},"attributes":[{"user_id":"\#(victim)"}]}"#,
            #"{"events":[{"name":"ce","user_id":"\#(outside)"},{"name":"ce","user_id":"\#(victim)"}]}"#,
        ] {
            let answer = try #require(
                connection.post(body, path: "/api/v3/data", headers: ["X-Braze-Api-Key": fixture.writeKey]))
            #expect(answer.status == 401, "\(body)")
        }
        #expect(try stored() == 0)
    }

    // MARK: User IDs in other members

    @Test(arguments: [
        #"{"type":"alias","userId":"user-1","previousId":"victim","messageId":"m"}"#,
        #"{"type":"alias","anonymousId":"a","userId":"user-1","previousId":"victim","messageId":"m"}"#,
        // An equal anonymous ID does not make `previousId` anonymous.
        #"{"type":"alias","anonymousId":"victim","userId":"user-1","previousId":"victim","messageId":"m"}"#,
        #"{"type":"track","event":"e","userId":"user-1","previousId":"victim","messageId":"m"}"#,
    ])
    func anAliasOfAnotherUserIsRejected(event: String) throws {
        #expect(try post(batch(event), as: "user-1").authErrorCode == 28)
        #expect(try post(batch(event), as: "victim").authErrorCode == 28)
        #expect(try post(batch(event)).authErrorCode == 26)
        #expect(try stored() == 0)
    }

    @Test(arguments: ["/v1/alias", "/v1/track", "/v1/batch"])
    func anAliasOfAnotherUserIsNotAnonymous(path: String) throws {
        let event = #"{"type":"alias","event":"e","anonymousId":"a","previousId":"victim","messageId":"m"}"#
        let body = path == "/v1/batch" ? batch(event) : event
        #expect(try post(body, path: path).authErrorCode == 26)
        #expect(try post(body, path: path, as: "user-1").authErrorCode == 21)
        #expect(try stored() == 0)
        // The named user may send the alias.
        #expect(try post(body, path: path, as: "victim").status == 200)
        #expect(try stored() == 1)
    }

    @Test func brazesExternalIDIsVerifiedLikeAUserID() throws {
        let headers = ["X-Braze-Api-Key": fixture.writeKey]
        let mine = headers.merging(["X-Braze-Auth-Signature": try fixture.token(for: "user-1")]) { $1 }
        for body in [
            #"{"device_id":"d","events":[{"name":"ce","external_id":"victim"}]}"#,
            #"{"device_id":"d","external_id":"victim","events":[{"name":"ce"}]}"#,
            #"{"device_id":"d","user_id":"user-1","attributes":[{"user_id":"user-1","external_id":"victim"}]}"#,
        ] {
            for headers in [headers, mine] {
                let answer = connection.post(body, path: "/api/v3/data", headers: headers)
                #expect(answer?.status == 401, "\(body)")
            }
        }
        #expect(try stored() == 0)
    }

    @Test(arguments: [#"["victim"]"#, #"{"id":"victim"}"#, "7.5", "true", #""vic\u0000tim""#])
    func invalidIDsAreRejectedInEveryMember(id: String) throws {
        for type in ["track", "identify", "page"] {
            let event =
                #"{"type":"\#(type)","event":"e","anonymousId":"a","messageId":"m","previousId":\#(id)}"#
            let answer = try post(batch(event))
            #expect(answer.status == 400 && answer.body.contains("invalid_event"), "\(event)")
        }
        for member in ["user_id", "external_id"] {
            for body in [
                #"{"device_id":"d","events":[{"name":"ce","\#(member)":\#(id)}]}"#,
                #"{"device_id":"d","attributes":[{"k":1,"\#(member)":\#(id)}]}"#,
            ] {
                let answer = connection.post(
                    body, path: "/api/v3/data", headers: ["X-Braze-Api-Key": fixture.writeKey])
                #expect(answer?.status == 201 && answer?.body.contains("invalid_event") == true, "\(body)")
            }
        }
        #expect(try stored() == 0)
    }

    @Test func aLocationBelongsToTheTokensUser() throws {
        let record =
            #"{"location":{"coords":{"latitude":1,"longitude":2},"uuid":"u","extras":{"user_id":"victim"}},"user_id":"victim","userId":"victim"}"#
        let answer = connection.post(
            record, path: "/api/locations/shop",
            headers: ["Authorization": "Bearer " + (try fixture.token(for: "user-1"))])
        #expect(answer?.status == 200)
        #expect(try fixture.rows("user_id") == [["user-1"]])
    }

    // MARK: Message ids

    private let genuine =
        #"{"type":"track","event":"paid","userId":"victim","anonymousId":"d","messageId":"m-1"}"#

    @Test func usersMayHaveTheSameMessageID() throws {
        let forged = [
            (#"{"type":"track","event":"x","anonymousId":"x","messageId":"m-1"}"#, nil),
            // Kinds of IDs are separate namespaces, even if the values look alike.
            (#"{"type":"track","event":"x","anonymousId":"victim","messageId":"m-1"}"#, nil),
            (#"{"type":"track","event":"x","anonymousId":"uvictim","messageId":"m-1"}"#, nil),
            (
                #"{"type":"track","event":"x","userId":"user-1","anonymousId":"d","messageId":"m-1"}"#,
                "user-1"
            ),
        ]
        for (event, user) in forged {
            #expect(try post(batch(event), as: user).json["accepted"] as? Int == 1, "\(event)")
            #expect(try post(batch(event), as: user).json["duplicates"] as? Int == 1, "\(event)")
        }
        #expect(try post(batch(genuine), as: "victim").json["accepted"] as? Int == 1)
        // With another anonymous ID, the event is still a duplicate of the same user's.
        let again = genuine.replacingOccurrences(of: #""d""#, with: #""e""#)
        #expect(try post(batch(again), as: "victim").json["duplicates"] as? Int == 1)
        #expect(try stored() == forged.count + 1)
    }

    @Test func usersMayHaveTheSameMessageIDInBrazeRequests() throws {
        func send(_ event: String, as user: String? = nil) throws {
            var headers = ["X-Braze-Api-Key": fixture.writeKey]
            if let user { headers["X-Braze-Auth-Signature"] = try fixture.token(for: user) }
            let answer = connection.post(
                #"{"device_id":"d","events":[\#(event)]}"#, path: "/api/v3/data", headers: headers)
            #expect(answer?.status == 201)
        }
        try send(#"{"name":"ce","message_id":"m-1"}"#)
        try send(#"{"name":"ce","message_id":"m-1","user_id":"victim"}"#, as: "victim")
        try send(#"{"name":"ce","message_id":"m-1","user_id":"victim"}"#, as: "victim")
        #expect(try stored() == 2)
    }
}
