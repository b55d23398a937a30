import CountersignCore
import CountersignGatewayTesting
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct ProjectDirectoryTests {
    private let place: TestStorage
    private let directory: AppDirectory

    init() throws {
        place = try TestStorage()
        directory = try place.openControl()
        _ = try directory.createApp(id: "shop")
        _ = try directory.createApp(id: "cafe")
    }

    private func project(_ app: String = "shop") throws -> Project {
        try #require(try directory.projects.all()[app])
    }

    @Test func anInboxMessageIsReadFromJSONAndWrittenAsJSON() throws {
        let json = #"""
            {"id":"hi","type":"push","content":{"title":"Hello"},"recipient":{"registered":"user-1"},
             "expires":"2026-12-24T18:00:00Z"}
            """#
        #expect(try directory.projects.putInboxMessage(json: json, in: "shop") == "hi")
        let message = try #require(try project().inbox.all.first)
        #expect(message.recipient == CustomerIdentifier(name: "registered", value: "user-1"))
        #expect(message.expiresMilliseconds == 1_798_135_200_000)
        #expect(
            message.json == [
                "id": "hi", "type": "push", "content": ["title": "Hello"],
                "recipient": ["registered": "user-1"], "expires": "2026-12-24T18:00:00.000Z",
            ])
        for bad in [
            "[]", #"{"id":1,"type":"html","content":{}}"#, #"{"id":"a","type":"html"}"#,
            #"{"id":"a","type":"html","content":{},"recipient":"user-1"}"#,
            #"{"id":"a","type":"html","content":{},"expires":"soon"}"#,
            #"{"id":"a","type":"html","content":{},"expires":"0000-01-01T00:00:00+01:00"}"#,
            #"{"id":"a","type":"html","content":{},"expire":"2026-12-24T18:00:00Z"}"#,
        ] {
            #expect(
                code { _ = try directory.projects.putInboxMessage(json: bad, in: "shop") } == .invalid,
                "\(bad)")
        }
    }

    @Test func theProjectTokenIsTheAppsIDUntilItIsSet() throws {
        #expect(try project().settings.token == "shop")
        try directory.setProjectToken("0aef3a96-3804-11e8-b710-141877340e97", for: "shop")
        #expect(try project().settings.token == "0aef3a96-3804-11e8-b710-141877340e97")
        #expect(code { try directory.setProjectToken("a/b", for: "shop") } == .invalid)
        #expect(code { try directory.setProjectToken("cafe", for: "shop") } == .conflict)
        #expect(code { try directory.setProjectToken("x", for: "nobody") } == .notFound)
        try directory.setProjectToken("mine", for: "cafe")
        #expect(code { try directory.setProjectToken("mine", for: "shop") } == .conflict)
    }

    /// A request names an app by its id or its project token, so one text must not name two apps.
    @Test func anIDAndTheProjectTokenOfAnotherAppDiffer() throws {
        try directory.setProjectToken("mine", for: "cafe")
        #expect(code { _ = try directory.createApp(id: "mine") } == .conflict)
        #expect(code { try directory.setProjectToken("cafe", for: "shop") } == .conflict)
    }

    @Test func omittedMembersOfMessagesAndConsentCategoriesGetDefaults() throws {
        try directory.projects.put(
            .inAppMessage, json: #"{"id":"m","trigger":{"event_type":"session_start"}}"#, in: "shop")
        #expect(
            try project().inAppMessages.first?.json == [
                "id": "m", "name": "m", "frequency": "always", "is_html": false, "is_rich_text": false,
                "variant_id": 0, "variant_name": "", "date_filter": ["enabled": false],
                "trigger": ["event_type": "session_start", "filter": []],
            ])
        try directory.projects.put(
            .consentCategory, json: #"{"id":"c","sources":{"page":true},"translations":{"en":{},"de":null}}"#,
            in: "shop")
        #expect(
            try project().consentCategories.first?.json == [
                "id": "c", "legitimate_interest": false,
                "translations": ["en": ["name": ""], "de": .null],
                "sources": [
                    "crm": false, "import": false, "page": true, "private_api": false, "public_api": false,
                    "scenario": false,
                ],
            ])
    }

    @Test(arguments: [
        (ProjectItem.Kind.inAppMessage, "no JSON", "JSON"),
        (.inAppMessage, "[]", "the item must"),
        (.inAppMessage, #"{"id":"","trigger":{"event_type":"x"}}"#, "id must"),
        (.inAppMessage, #"{"id":"m"}"#, "trigger must"),
        (.inAppMessage, #"{"id":"m","trigger":{}}"#, "trigger.event_type must"),
        (.inAppMessage, #"{"id":"m","is_html":1,"trigger":{"event_type":"x"}}"#, "is_html must"),
        (.inAppMessage, #"{"id":"m","load_delay":1.5,"trigger":{"event_type":"x"}}"#, "load_delay must"),
        (.inAppMessage, #"{"id":"m","payload":"x","trigger":{"event_type":"x"}}"#, "payload must"),
        (
            .inAppMessage, #"{"id":"m","date_filter":{"from_date":"x"},"trigger":{"event_type":"x"}}"#,
            "date_filter.from_date must"
        ),
        (
            .inAppMessage,
            #"{"id":"m","trigger":{"event_type":"x","filter":[{"attribute":{"type":"property"}}]}}"#,
            "trigger.filter[0].attribute.property must"
        ),
        (
            .inAppMessage,
            #"{"id":"m","trigger":{"event_type":"x","filter":[{"attribute":{"type":"timestamp"},"constraint":{"type":"x"}}]}}"#,
            "constraint.type must"
        ),
        (
            .inAppMessage,
            #"{"id":"m","trigger":{"event_type":"x","filter":[{"attribute":{"type":"timestamp"},"constraint":{"type":"number","operator":"equal to","operands":[{"type":"x"}]}}]}}"#,
            "operands[0].type must"
        ),
        (.consentCategory, #"{"id":"c","sources":{"crm":"yes"}}"#, "sources.crm must"),
        (.consentCategory, #"{"id":"c","translations":{"en":{"name":7}}}"#, "translations.en.name must"),
    ])
    func messagesThatClientsCannotDecodeAreRejected(kind: ProjectItem.Kind, json: String, says: String) throws
    {
        let error = #expect(throws: GatewayError.self) {
            try directory.projects.put(kind, json: json, in: "shop")
        }
        #expect(error?.code == .invalid)
        #expect(error?.reason.contains(says) == true, "\(error?.reason ?? "")")
        #expect(try project().inAppMessages.isEmpty)
    }

    @Test func aReplacedItemKeepsItsPositionInTheList() throws {
        try directory.projects.put(
            .consentCategory, json: #"{"id":"a","legitimate_interest":false}"#, in: "shop")
        try directory.projects.put(.consentCategory, json: #"{"id":"b"}"#, in: "shop")
        try directory.projects.put(
            .consentCategory, json: #"{"id":"a","legitimate_interest":true}"#, in: "shop")
        #expect(try project().consentCategories.map(\.id) == ["a", "b"])
        #expect(try project("cafe").consentCategories.isEmpty)
        try directory.projects.remove(.consentCategory, id: "a", from: "shop")
        #expect(try project().consentCategories.map(\.id) == ["b"])
        #expect(
            code { try directory.projects.remove(.consentCategory, id: "a", from: "shop") } == .notFound)
        #expect(code { try directory.projects.remove(.inAppMessage, id: "b", from: "shop") } == .notFound)
    }

    @Test func customerTokenAndWebhookSecretsAreGeneratedOrGivenAndNeverShort() throws {
        #expect(try directory.projects.addCustomerTokenKey(id: "k1", to: "shop").utf8.count >= 32)
        #expect(code { _ = try directory.projects.addCustomerTokenKey(id: "k1", to: "shop") } == .conflict)
        #expect(
            code { _ = try directory.projects.addCustomerTokenKey(id: "k2", secret: "short", to: "shop") }
                == .invalid)
        #expect(code { _ = try directory.projects.addCustomerTokenKey(id: "", to: "shop") } == .invalid)
        try directory.projects.deleteCustomerTokenKey(id: "k1", of: "shop")
        #expect(try project().customerTokenKeys.isEmpty)
        let secret = try directory.setPushWebhook(url: "https://push.example/hook", for: "shop")
        #expect(secret.hasPrefix("whsec_"))
        for url in ["push.example", "ftp://push.example", "https://me:pass@push.example", "https://"] {
            #expect(code { _ = try directory.setPushWebhook(url: url, for: "shop") } == .invalid)
        }
        #expect(
            code {
                _ = try directory.setPushWebhook(url: "https://a.b", secret: "whsec_c2hvcnQ=", for: "shop")
            }
                == .invalid)
        var settings = try project().settings
        settings.webhook = nil
        try directory.setProject(settings, for: "shop")
        #expect(try project().settings.webhook == nil)
    }

    @Test func inboxMessagesThatClientsCannotShowAreRejected() throws {
        #expect(
            code { try directory.projects.putInboxMessage(id: "", type: "html", content: "{}", in: "shop") }
                == .invalid)
        #expect(
            code { try directory.projects.putInboxMessage(id: "m", type: "x", content: "{}", in: "shop") }
                == .invalid)
        #expect(
            code { try directory.projects.putInboxMessage(id: "m", type: "html", content: "[]", in: "shop") }
                == .invalid)
        #expect(code { try directory.projects.removeInboxMessage(id: "m", from: "shop") } == .notFound)
    }
}
