import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayHTTP
@testable import GatewayModel
@testable import GatewayStorage

/// Custom dialects: `ExampleDialect`, and a dialect with all optional declarations.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
final class DialectTests {
    /// Uses every optional declaration of a dialect.
    private struct DeclaringDialect: Dialect {
        let endpoints = [
            Endpoint(method: "GET", path: "/declared") { _, _ in .answer(.json(200, Array("{}".utf8))) }
                .described(APIOperation(summary: "Declare", answer: APIOperation.schema("Declared"))).forPages
        ]
        let schemas: JSONObject = ["Declared": ["type": "object"]]
        let requestHeaders = ["X-Declared"]
        let rejection: Router.Rejection? = Router.Rejection(prefixes: ["/declared"]) { status, _, _, _ in
            .json(status, Array(#"{"declared":\#(status)}"#.utf8))
        }
    }

    private static let now = Date(timeIntervalSince1970: 1_750_000_000)

    private let place: TestStorage
    private let writeKey: String
    private let signingKey: SigningKey
    private let gateway: Gateway
    private let client: any TestClient

    init() throws {
        place = try TestStorage()
        let apps = try place.openControl()
        writeKey = try apps.createApp(id: "shop").writeKey
        signingKey = try SharedKeys.stranger()
        _ = try apps.addKey(signingKey.publicKey.pem, description: "test key", to: "shop")
        try apps.setEnforcement(.required, for: "shop")
        var rules = AppRules()
        rules.origins = ["*"]
        try apps.setRules(rules, of: "shop")
        gateway = try Gateway(
            configuration: place.configuration, now: { Self.now },
            dialects: { path in
                [
                    ExampleDialect(path: path),
                    DeclaringDialect(),
                ]
            })
        try TestTransport.standard.start(gateway)
        client = try TestTransport.standard.client(of: gateway)
    }

    deinit {
        gateway.stop()
    }

    private func post(_ body: String, key: String? = nil, token: String? = nil) throws -> TestAnswer {
        try #require(
            client.post(
                body, path: "/example/\(key ?? writeKey)",
                headers: token.map { ["Authorization": "Bearer \($0)"] } ?? [:]))
    }

    @Test func theExampleDialectStoresEvents() throws {
        let token = try signingKey.sign(claims: ["sub": "ada", "exp": 1_750_000_600])
        let body = #"{"user":"ada","color":"red"}"#
        let answer = try post(body, token: token)
        #expect(answer.status == 200)
        #expect(answer.json["accepted"] as? Int == 1)
        var export = EventQuery(appID: "shop")
        export.isExport = true
        let stored = try place.open().log.follow(export, after: 0, limit: 9).events
        #expect(stored.map(\.userID) == ["ada"])
        #expect(stored.map { String(decoding: $0.body, as: UTF8.self) } == [body])
    }

    @Test func theExampleDialectIsVerifiedLikeOthers() throws {
        let token = try signingKey.sign(claims: ["sub": "bob", "exp": 1_750_000_600])
        for (token, expected) in [(nil, 26), (token, 21), ("nonsense", 20)] {
            let answer = try post(#"{"user":"ada"}"#, token: token)
            #expect(answer.status == 401)
            #expect(answer.authErrorCode == expected)
        }
        #expect(try post("{}", key: "none").json["code"] as? String == "invalid_write_key")
        #expect(try post("{").json["code"] as? String == "invalid_json")
        #expect(client.get("/example/\(writeKey)")?.headers["allow"] == "POST")
    }

    @Test func aDialectsDeclarationsReachRouterCORSAndDocument() throws {
        #expect(client.get("/declared")?.status == 200)
        #expect(client.get("/declared/none")?.body == #"{"declared":404}"# + "\n")
        #expect(client.post("{}", path: "/declared")?.body == #"{"declared":405}"# + "\n")
        #expect(client.get("/none")?.json["code"] as? String == "not_found")
        let asked = client.send(
            "OPTIONS", "/declared",
            ["Origin": "https://shop.example", "Access-Control-Request-Method": "GET"], nil)
        let allowed = asked?.headers["access-control-allow-headers"]?.components(separatedBy: ", ")
        #expect(allowed?.contains("X-Declared") == true)
        let document = try #require(client.get("/openapi.json")?.json)
        let paths = document["paths"] as? [String: Any]
        #expect(paths?["/example/{writeKey}"] != nil)
        #expect(paths?["/declared"] != nil)
        let schemas = (document["components"] as? [String: [String: Any]])?["schemas"]
        #expect(schemas?["Declared"] != nil)
    }
}
