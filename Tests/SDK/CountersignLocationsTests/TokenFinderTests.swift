import CountersignCore
import CountersignTransport
import Foundation
import SDKTestSupport
import Testing

@testable import CountersignLocations

/// Answers of authorization servers from bug reports and documentation, with their keys in every order.
struct TokenFinderTests {
    struct Vector: Sendable, CustomStringConvertible {
        let name: String
        let json: String
        let access: String?
        let refresh: String?
        /// Seconds from `now`; nil: unknown.
        let lifetime: TimeInterval?

        var description: String { name }
    }

    /// 2026-02-20 18:00:00 GMT
    static let now = Date(timeIntervalSince1970: 1_771_610_400)

    static let vectors = [
        Vector(
            name: "1 nested, expires_at as seconds from now",
            json: #"{"token":{"access_token":"A","expires_at":3900},"refresh_token":"R"}"#, access: "A",
            refresh: "R", lifetime: 3_900),
        Vector(
            name: "2 flat, expiry", json: #"{"accessToken":"A","refreshToken":"R","expiry":3900}"#,
            access: "A", refresh: "R", lifetime: 3_900),
        Vector(
            name: "3 RFC 6749",
            json:
                #"{"access_token":"A","token_type":"Bearer","expires_in":3600,"refresh_token":"R","scope":"x"}"#,
            access: "A", refresh: "R", lifetime: 3_600),
        Vector(
            name: "4 Cognito",
            json: #"{"id_token":"I","access_token":"A","token_type":"Bearer","expires_in":300}"#, access: "A",
            refresh: nil, lifetime: 300),
        Vector(
            name: "5 Google", json: #"{"id_token":"I","expires_in":"3600","refresh_token":"R"}"#,
            access: "I", refresh: "R", lifetime: 3_600),
        Vector(
            name: "6 Keycloak",
            json:
                #"{"access_token":"a.b.c","expires_in":300,"refresh_expires_in":1800,"refresh_token":"d.e.f","id_token":"g.h.i","not-before-policy":0,"session_state":"s"}"#,
            access: "a.b.c", refresh: "d.e.f", lifetime: 300),
        Vector(
            name: "7 dates, and a name that resembles an access token",
            json:
                #"{".expires":"Fri, 20 Feb 2026 18:10:06 GMT",".issued":"Fri, 20 Feb 2026 18:00:06 GMT","accessTierId":1000,"access_token":"A"}"#,
            access: "A", refresh: nil, lifetime: 606),
        Vector(
            name: "8 tokens as objects, an expiry in the past",
            json:
                #"{"access_token":{"token":"A","token_type":"Bearer","expires_in":1581188596},"refresh_token":{"token":"R","token_type":"Refresh"}}"#,
            access: "A", refresh: "R", lifetime: nil),
        Vector(
            name: "9 background-geolocation-console",
            json: #"{"accessToken":"A","expires":-1,"refreshToken":"R","refreshExpiresIn":12341234}"#,
            access: "A", refresh: "R", lifetime: nil),
        Vector(
            name: "10 arrays",
            json:
                #"{"token":"A","refreshToken":"R","tokenExpiresInSecs":900,"refreshTokenExpiresInSecs":9,"permissions":["x"],"mkt":[]}"#,
            access: "A", refresh: "R", lifetime: 900),
        Vector(
            name: "11 opaque", json: #"{"access_token":"1f/ab~c","refresh_token":"2"}"#, access: "1f/ab~c",
            refresh: "2", lifetime: nil),
        Vector(
            name: "12 Supabase",
            json:
                #"{"access_token":"A","expires_in":3600,"expires_at":1771614000,"refresh_token":"R","user":{"id":"u","last_sign_in_at":"2026-02-20T18:00:00Z"}}"#,
            access: "A", refresh: "R", lifetime: 3_600),
        Vector(
            name: "13 rejection", json: #"{"error":"invalid_grant"}"#, access: nil, refresh: nil,
            lifetime: nil),
        Vector(name: "14 empty", json: "{}", access: nil, refresh: nil, lifetime: nil),
        Vector(
            name: "not tokens",
            json:
                #"{"accessLevel":"A","author":"B","authorization_url":"https://a","token_type":"Bearer","refresh_token_expires":"1"}"#,
            access: nil, refresh: nil, lifetime: nil),
        Vector(
            name: "header injection",
            json: #"{"access_token":"A\r\nX: y","token":"","refresh_token":"R"}"#, access: nil, refresh: nil,
            lifetime: nil),
        Vector(
            name: "a refresh token with characters that an access token cannot have",
            json: #"{"access_token":"A","refresh_token":"M.C5!x*$ \"~"}"#, access: "A",
            refresh: "M.C5!x*$ \"~", lifetime: nil),
        Vector(
            name: "a refresh token with a control character",
            json: #"{"access_token":"A","refresh_token":"R\r\nX: y"}"#, access: "A", refresh: nil,
            lifetime: nil),
        Vector(
            name: "a link to refresh",
            json: #"{"access_token":"A","links":{"refresh":"https://auth.example/refresh"}}"#, access: "A",
            refresh: nil, lifetime: nil),
        Vector(
            name: "tokens that are not text", json: #"{"access_token":17,"token":true,"jwt":null}"#,
            access: nil, refresh: nil, lifetime: nil),
        Vector(
            name: "an ID token and an access token under another name",
            json: #"{"id_token":{"token":"I"},"user_access_token":"A"}"#, access: "A", refresh: nil,
            lifetime: nil),
        Vector(
            name: "several token names in a session",
            json:
                #"{"data":{"session":{"jwt":"A","renewalToken":"R","expires":60},"id_token":"I"},"exp":7}"#,
            access: "A", refresh: "R", lifetime: 60),
        Vector(
            name: "equally good tokens: the first by name",
            json:
                #"{"west":{"access_token":"C"},"east":{"access_token":"A"},"north":{"access_token":"B"}}"#,
            access: "A", refresh: nil, lifetime: nil),
        Vector(
            name: "an expiry that is named after its token",
            json: #"{"access_token":"A","access_token_expires_in":600,"id_token_expires_in":60}"#,
            access: "A", refresh: nil, lifetime: 600),
        // Arrays are searched only if no token is outside of them.
        Vector(
            name: "in an array",
            json: #"{"sessions":[{"user":"u"},{"token":{"access_token":"A"},"refresh_token":"R"}]}"#,
            access: "A", refresh: "R", lifetime: nil),
        Vector(
            name: "arrays in arrays", json: #"{"data":[[{"jwt":"A","expires_in":60}]]}"#, access: "A",
            refresh: nil,
            lifetime: 60),
        Vector(
            name: "the first element of several",
            json:
                #"{"tokens":[{"x":1},{"x":1},{"access_token":"A","refresh_token":"R"},{"x":1},{"x":1},{"x":1},{"x":1},{"x":1},{"x":1},{"x":1},{"access_token":"B","refresh_token":"C"}]}"#,
            access: "A", refresh: "R", lifetime: nil),
        Vector(
            name: "the name of the array counts", json: #"{"access_tokens":[{"value":"A"}]}"#, access: "A",
            refresh: nil, lifetime: nil),
        Vector(
            name: "array elements next to a token are ignored",
            json: #"{"token":"A","devices":[{"access_token":"B","refresh_token":"C","expires_in":60}]}"#,
            access: "A",
            refresh: nil, lifetime: nil),
        Vector(
            name: "texts in an array have no name", json: #"{"token":["A"],"refresh_token":["R"]}"#,
            access: nil, refresh: nil, lifetime: nil),
    ]

    @Test func mappingNamesElementsOfArrays() throws {
        var configuration = AuthorizationConfiguration()
        configuration.responseMapping = ["accessToken": "$.data[1].a[0]", "refreshToken": "$.data[1].b"]
        let json = #"{"access_token":"wrong","data":[{"b":"wrong"},{"a":["A"],"b":"R"}]}"#
        #expect(
            try grant(json, configuration: configuration)
                == TokenFinder.Grant(accessToken: "A", refreshToken: "R", expiry: nil))
    }

    private func grant(
        _ json: String, configuration: AuthorizationConfiguration = AuthorizationConfiguration()
    ) throws -> TokenFinder.Grant? {
        let object = try #require(JSONDocument.object(Array(json.utf8)))
        return TokenFinder(configuration: configuration).grant(in: object)
    }

    @Test(arguments: vectors)
    func theOrderOfMembersDoesNotChangeTheTokensFound(_ vector: Vector) throws {
        let value = try #require(JSONDocument.value(Array(vector.json.utf8)))
        for text in permutations(value) {
            let grant = try grant(text)
            try #require(grant?.accessToken == vector.access, "\(text)")
            guard vector.access != nil else { continue }
            try #require(grant?.refreshToken == vector.refresh, "\(text)")
            try #require(grant?.expiry?.lifetime(at: Self.now) == vector.lifetime, "\(text)")
        }
    }

    /// Returns all JSON texts of `value`: the members of each object occur in each order.
    private func permutations(_ value: JSONValue) -> [String] {
        guard case .object(let members) = value else { return [String(decoding: value.bytes, as: UTF8.self)] }
        var orders: [[String]] = [[]]
        for name in members.keys.sorted() {
            orders = orders.flatMap { order in
                (0...order.count).map { Array(order[..<$0]) + [name] + Array(order[$0...]) }
            }
        }
        let texts = members.mapValues(permutations)
        return orders.flatMap { order -> [String] in
            order.reduce([""]) { heads, name in
                heads.flatMap { head in
                    (texts[name] ?? []).map { text in
                        "\(head)\(head.isEmpty ? "" : ",")\(quoted(name)):\(text)"
                    }
                }
            }.map { "{\($0)}" }
        }
    }

    private func quoted(_ name: String) -> String {
        var bytes: [UInt8] = []
        JSONValue.write(name, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func responseMappingSelectsTheMembers() throws {
        var configuration = AuthorizationConfiguration()
        configuration.responseMapping = [
            "accessToken": "$.a.b", "refreshToken": "c", "expires": "$.a.in",
        ]
        let grant = try grant(
            #"{"access_token":"wrong","refresh_token":"wrong","expires_in":1,"a":{"b":"A","in":60},"c":"R"}"#,
            configuration: configuration)
        #expect(
            grant
                == TokenFinder.Grant(accessToken: "A", refreshToken: "R", expiry: .lifetime(60)))
        configuration.responseMapping = ["accessToken": "$.nowhere"]
        #expect(try self.grant(#"{"access_token":"wrong"}"#, configuration: configuration) == nil)
    }

    @Test func tokensAreSearchedToALimitedDepth() throws {
        let deep =
            String(repeating: #"{"a":"#, count: 200) + #"{"access_token":"A"}"#
            + String(repeating: "}", count: 200)
        #expect(try grant(deep) == nil)
        let deepArrays =
            String(repeating: #"{"a":["#, count: 200) + #"{"access_token":"A"}"#
            + String(repeating: "]}", count: 200)
        #expect(try grant(deepArrays) == nil)
        #expect(try grant(#"{"a":{"b":{"c":{"access_token":"A"}}}}"#)?.accessToken == "A")
    }

    @Test(arguments: [
        (JSONValue.integer(3_900), 3_900.0 as Double?), (.string("3600"), 3_600), (.number(0.5), 0.5),
        (.integer(1_771_610_500), 100), (.string("1771610500"), 100), (.integer(1_771_610_500_000), 100),
        (.string("2026-02-20T18:01:40Z"), 100), (.string("2026-02-20T19:01:40.000+01:00"), 100),
        (.string("2026-02-20T18:01:40+0000"), 100), (.string("2026-02-20T18:01:40"), nil),
        (.string("Fri, 20 Feb 2026 18:01:40 GMT"), 100), (.integer(-1), nil), (.integer(0), nil),
        (.string("soon"), nil), (.string(""), nil), (.bool(true), nil), (.null, nil),
        (.integer(1_581_188_596), nil), (.number(.infinity), nil), (.string("nan"), nil),
    ])
    func anExpiryIsReadAsALifetimeOrATime(value: JSONValue, lifetime: TimeInterval?) {
        #expect(Expiry(value)?.lifetime(at: Self.now) == lifetime)
    }

    @Test func theUnitOfAnExpiryCanBeSet() {
        #expect(Expiry(.integer(2_000_000_000), unit: .relative) == .lifetime(2_000_000_000))
        #expect(Expiry(.integer(5_000), unit: .epochMilliseconds) == .instant(5))
        #expect(Expiry(.integer(5_000), unit: .epochSeconds) == .instant(5_000))
    }
}
