import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

/// Attempts to reach another customer's profile, with the project's key or with the attacker's own token.
/// Jane is the victim. Her profile has a cookie, an email address, a property and two messages.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct BloomreachForgeryTests {
    private let client: BloomreachClient
    private let track = "/track/v2/projects/{p}/customers"

    init() throws {
        client = try BloomreachClient()
        #expect(
            client.post(
                track,
                #"{"customer_ids":{"registered":"jane","cookie":"C","email":"jane@x.com"},"properties":{"city":"Brno"},"timestamp":1700000000}"#
            )?.status == 200)
        for (id, name, value) in [("janes", "registered", "jane"), ("mails", "email", "jane@x.com")] {
            try client.edit {
                try $0.projects.putInboxMessage(
                    id: id, type: "html", content: #"{"title":"secret"}"#,
                    recipient: CustomerIdentifier(name: name, value: value), expiresMilliseconds: nil,
                    in: "shop")
            }
        }
    }

    enum Mode: CaseIterable {
        case disabled, optional, required, ramp
    }

    private func set(_ mode: Mode) throws {
        var plan = EnforcementPlan()
        switch mode {
        case .disabled: break
        case .optional: plan.state = .optional
        case .required: plan.state = .required
        case .ramp:
            plan.state = .required
            // A percentage that includes Jane and excludes the attacker.
            plan.rampPercent = try #require(
                (1...99).first {
                    EnforcementPlan.isRamped("jane", of: "shop", percent: $0)
                        && !EnforcementPlan.isRamped("attacker", of: "shop", percent: $0)
                })
        }
        try client.edit { try $0.setEnforcementPlan(plan, for: "shop") }
    }

    private func post(_ path: String, _ body: String, as user: String?) throws -> TestAnswer {
        let extra = try user.map { ["X-Countersign-Signature": try client.fixture.token(for: $0)] } ?? [:]
        return try #require(client.post(path, body, extra: extra))
    }

    private func read(_ ids: String, as user: String?) throws -> TestAnswer {
        try post(
            "/data/v2/projects/{p}/customers/attributes",
            #"{"customer_ids":\#(ids),"attributes":[{"type":"property","property":"city"},{"type":"id","id":"email"},{"type":"id","id":"registered"}]}"#,
            as: user)
    }

    private func fetch(_ ids: String, as user: String?) throws -> TestAnswer {
        try post("/webxp/projects/{p}/appinbox/fetch", #"{"customer_ids":\#(ids)}"#, as: user)
    }

    /// Jane's stored ids, properties and read messages, as text.
    private func janesProfile() throws -> [String] {
        let database = try client.fixture.place.connection(to: "events")
        let jane =
            "(SELECT customer_id FROM customer_identifier WHERE name = 'registered' AND value = 'jane')"
        return try database.all(
            """
            SELECT name || '=' || value FROM customer_identifier WHERE customer_id = \(jane)
            UNION ALL SELECT name || '=' || value FROM customer_property WHERE customer_id = \(jane)
            UNION ALL SELECT 'read ' || message_id FROM inbox_read WHERE customer_id = \(jane) ORDER BY 1
            """
        ) { $0.text(0) }
    }

    private static let untouched = ["city=\"Brno\"", "cookie=C", "email=jane@x.com", "registered=jane"]

    /// Ids that do not prove that Jane is the sender, and the user of the token sent with them.
    private static let foreign: [(ids: String, user: String?)] = [
        (#"{"registered":"jane"}"#, nil), (#"{"registered":"jane"}"#, "attacker"),
        (#"{"registered":"jane","zzz":"attacker"}"#, "attacker"),
        (#"{"zzz":"attacker","email":"jane@x.com"}"#, "attacker"),
        (#"{"email":"jane@x.com","zzz":"attacker"}"#, "attacker"),
        (#"{"email":"jane@x.com"}"#, nil), (#"{"email":"jane@x.com"}"#, "jane@x.com"),
        (#"{"cookie":"C"}"#, nil), (#"{"cookie":"C"}"#, "attacker"),
        (#"{"cookie":"C","email":"jane@x.com"}"#, nil),
        (#"{"registered":"attacker","email":"jane@x.com"}"#, "attacker"),
        (#"{"registered":"attacker","cookie":"C"}"#, "attacker"),
        (#"{"cookie":"C","registered":"attacker","email":"jane@x.com"}"#, "attacker"),
        (#"{"registered":"","cookie":"C"}"#, "attacker"), (#"{"registered":null,"cookie":"C"}"#, nil),
        (#"{"Registered":"attacker","cookie":"C"}"#, "attacker"),
    ]

    @Test(arguments: Mode.allCases)
    func onlyTheCustomerReadsTheProfile(mode: Mode) throws {
        try set(mode)
        for (ids, user) in Self.foreign {
            for answer in [try read(ids, as: user), try fetch(ids, as: user)] {
                for secret in ["Brno", "secret", "\"value\":\"jane"] {
                    #expect(!answer.body.contains(secret), "\(ids) as \(user ?? "nobody")")
                }
            }
        }
        // Jane can read her profile, also with a cookie beside her id, in every enforcement mode.
        let ids = #"{"cookie":"C","registered":"jane"}"#
        let own = try #require(try read(ids, as: "jane").json["results"] as? [[String: Any]])
        #expect(own.map { $0["value"] as? String } == ["Brno", "jane@x.com", "jane"])
        let messages = try fetch(ids, as: "jane").json["messages"] as? [[String: Any]]
        #expect(Set(messages?.compactMap { $0["id"] as? String } ?? []) == ["janes", "mails"])
    }

    /// Without required tokens, an unverified `registered` id is accepted, but soft ids are not.
    @Test(arguments: Mode.allCases)
    func onlyTheCustomerWritesTheProfile(mode: Mode) throws {
        try set(mode)
        for (ids, user) in Self.foreign {
            // Enforcement accepts this unverified id for events.
            let isAccepted =
                (mode == .disabled || mode == .optional) && ids.contains(#""registered":"jane""#)
            for (path, members) in [
                (track, #""properties":{"city":"Forged"}"#),
                (track + "/events", #""event_type":"e","properties":{"city":"Forged"}"#),
                ("/track/v2/projects/{p}/campaigns/clicks", #""url":"https://x""#),
                ("/webxp/projects/{p}/appinbox/markasread", #""message_ids":["janes","mails"]"#),
            ] where !isAccepted || path.hasSuffix("markasread") {
                _ = try post(path, #"{"customer_ids":\#(ids),\#(members)}"#, as: user)
                #expect(try janesProfile() == Self.untouched, "\(path) \(ids) as \(user ?? "nobody")")
            }
        }
        // Jane's next request finds her profile unchanged.
        _ = try post(
            track, #"{"customer_ids":{"registered":"jane","cookie":"D"},"properties":{"city":"Wien"}}"#,
            as: "jane")
        #expect(
            try janesProfile() == [
                "city=\"Wien\"", "cookie=C", "cookie=D", "email=jane@x.com", "registered=jane",
            ])
    }

    /// With required tokens, a soft id other than a cookie is a user like a `registered` one. Sent beside
    /// the attacker's own id, it must not open a profile that it could not open alone.
    @Test(arguments: [Mode.required, .ramp])
    func aSoftIDBesideTheTokensIDOpensNoOtherProfile(mode: Mode) throws {
        let victims = #"{"phone":"victim"}"#
        _ = try post(track, #"{"customer_ids":\#(victims),"properties":{"city":"Linz"}}"#, as: nil)
        try set(mode)
        let ids = #"{"registered":"attacker","phone":"victim"}"#
        for user in ["attacker", nil] {
            #expect(try !read(ids, as: user).body.contains("Linz"))
            for (path, members) in [
                (track, #""properties":{"city":"Forged"}"#), (track + "/events", #""event_type":"e""#),
                ("/webxp/projects/{p}/appinbox/markasread", #""message_ids":["janes"]"#),
            ] {
                _ = try post(path, #"{"customer_ids":\#(ids),\#(members)}"#, as: user)
            }
            #expect(try !read(#"{"registered":"attacker"}"#, as: "attacker").body.contains("Linz"))
        }
        #expect(try read(victims, as: "victim").body.contains("Linz"))
        // An unused soft id is still attached.
        _ = try post(
            track,
            #"{"customer_ids":{"registered":"attacker","email":"a@x.com"},"properties":{"city":"Ulm"}}"#,
            as: "attacker")
        let own = try read(#"{"registered":"attacker"}"#, as: "attacker").body
        #expect(own.contains("a@x.com") && own.contains("Ulm"))
    }

    @Test func softIDsCreateAndJoinCustomersWithoutAHardID() throws {
        _ = try post(track, #"{"customer_ids":{"cookie":"N"},"properties":{"city":"Graz"}}"#, as: nil)
        _ = try post(track, #"{"customer_ids":{"cookie":"N","phone":"1"}}"#, as: nil)
        let results = try read(#"{"phone":"1"}"#, as: nil).json["results"] as? [[String: Any]]
        #expect(results?.first?["value"] as? String == "Graz")
        // A customer who signs in takes over the anonymous profile, which is then closed.
        _ = try post(track, #"{"customer_ids":{"cookie":"N","registered":"nora"}}"#, as: nil)
        #expect(try !read(#"{"cookie":"N"}"#, as: nil).body.contains("Graz"))
        #expect(try read(#"{"registered":"nora"}"#, as: "nora").body.contains("Graz"))
    }

    @Test func idsInDifferentUnicodeFormsAreDifferentCustomers() throws {
        let composed = "r\u{E9}mi", decomposed = "re\u{301}mi"
        _ = try post(
            track, #"{"customer_ids":{"registered":"\#(composed)"},"properties":{"city":"Lyon"}}"#, as: nil)
        for mode in Mode.allCases {
            try set(mode)
            #expect(
                try !read(#"{"registered":"\#(composed)"}"#, as: decomposed).body.contains("Lyon"), "\(mode)")
            #expect(
                try !read(#"{"registered":"\#(decomposed)"}"#, as: decomposed).body.contains("Lyon"),
                "\(mode)")
            #expect(
                try read(#"{"registered":"\#(composed)"}"#, as: composed).body.contains("Lyon"), "\(mode)")
        }
        let twice = try post(
            track, #"{"customer_ids":{"registered":"attacker","registered":"jane"}}"#, as: "attacker")
        #expect(twice.status == 400)
        let escaped = #"{"customer_ids":{"registered":"attacker","re\u0067istered":"jane"}}"#
        #expect(try post(track, escaped, as: "attacker").status == 400)
    }

    @Test func aTokenThatHasExpiredOrIsSignedByAnotherKeyReadsNothing() throws {
        let stranger = try SharedKeys.stranger()
        let bad = [
            try client.fixture.token(for: "jane", lifetime: -120),
            try client.fixture.token(for: "jane", key: stranger), "x", "",
        ]
        for mode in [Mode.disabled, .optional] {
            try set(mode)
            for token in bad {
                let answer = client.post(
                    "/data/v2/projects/{p}/customers/attributes",
                    #"{"customer_ids":{"registered":"jane"},"attributes":[{"type":"property","property":"city"}]}"#,
                    extra: ["X-Countersign-Signature": token])
                #expect(answer?.status == 200)
                let result = (answer?.json["results"] as? [[String: Any]])?.first
                #expect(result?["success"] as? Bool == false)
                #expect((result?["error"] as? String)?.contains("token") == true)
            }
        }
    }
}
