import BackgroundGeolocationCompat
import CountersignCore
import CountersignDelivery
import CountersignGateway
import CountersignGatewayTesting
import CountersignTesting
import CountersignTransport
import Foundation
import GatewayModel
import Testing

/// The plugin with a real gateway and its token service, over real sockets.
@Suite(.timeLimit(.minutes(5)))
struct GatewayScenarioTests {
    private let fixture: GatewayFixture
    /// The clock of the gateway and of the devices.
    private let clock = ManualClock(now: Date())

    init() throws {
        fixture = try GatewayFixture(.live, now: { [clock] in clock.now })
    }

    private func allow(accessSeconds: Int) throws {
        var rules = TokenRules()
        rules.allowsRegistration = true
        rules.accessSeconds = accessSeconds
        try fixture.apps.setTokenRules(rules, for: fixture.appID)
        try fixture.gateway.refreshApps()
    }

    private var endpoint: String { "http://127.0.0.1:\(fixture.gateway.port)" }

    private func register(_ device: String) async throws -> [String: String] {
        let url = try #require(URL(string: endpoint + "/api/register"))
        let transport = makeDefaultTransport()
        let answer = try await transport.send(
            TransportRequest(
                url: url, headers: [("Content-Type", "application/json")],
                body: Array(#"{"org":"\#(fixture.appID)","uuid":"\#(device)","model":"m"}"#.utf8)))
        #expect(answer.status == 200)
        let object = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        return (object ?? [:]).compactMapValues { $0 as? String }
    }

    private func ready(_ bgGeo: BGGeo, device: String, pair: [String: String]) {
        let directory = URL(fileURLWithPath: fixture.dataDirectory).appendingPathComponent(device)
        bgGeo.override {
            $0.dataDirectory = directory
            $0.clock = clock
        }
        bgGeo.ready { config in
            config.http.url = endpoint + "/api/locations"
            config.http.autoSync = false
            config.authorization.accessToken = pair["accessToken"]
            config.authorization.refreshToken = pair["refreshToken"]
            config.authorization.refreshUrl = endpoint + "/api/refresh_token"
            config.authorization.refreshPayload = ["refresh_token": "{refreshToken}"]
        }
    }

    private func stored() throws -> [String] {
        try fixture.rows("message_id", where: "type = 'location'").compactMap(\.[0])
    }

    /// Access tokens expire after three seconds. Each launch starts with the tokens from the registration.
    @Test func shortLivedTokensNeverNeedALogin() async throws {
        try allow(accessSeconds: 3)
        let names = (0..<4).map { "device-\($0)" }
        var pairs: [String: [String: String]] = [:]
        for name in names { pairs[name] = try await register(name) }
        let refreshes = Lock(0)
        var uuids: [String] = []
        for _ in 1...3 {
            let apps = names.map { name in
                let bgGeo = BGGeo()
                ready(bgGeo, device: name, pair: pairs[name] ?? [:])
                bgGeo.onAuthorization { event in
                    #expect(event.isSuccess, "\(event.error?.localizedDescription ?? "")")
                    refreshes.withLock { $0 += 1 }
                }
                return bgGeo
            }
            for _ in 1...2 {
                // Longer than the reuse window of a refresh token.
                clock.advance(by: 90)
                uuids += try await withThrowingTaskGroup(of: String.self) { group in
                    for bgGeo in apps {
                        group.addTask {
                            let uuid = try await bgGeo.insert(["coords": ["latitude": 1, "longitude": 2]])
                            try await bgGeo.sync()
                            return uuid
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
            }
            for bgGeo in apps {
                #expect(await bgGeo.isReauthenticationRequired == false)
                await bgGeo.close()
            }
        }
        #expect(refreshes.withLock { $0 } == 4 * 3 * 2)
        #expect(try stored().sorted() == uuids.sorted())
    }

    @Test func anInvalidRefreshTokenRequiresANewLogin() async throws {
        try allow(accessSeconds: 3_600)
        let pair = try await register("device")
        let bgGeo = BGGeo()
        ready(
            bgGeo, device: "device",
            pair: [
                "accessToken": "not.a.token", "refreshToken": (pair["refreshToken"] ?? "") + "x",
            ])
        let uuid = try await bgGeo.insert(["coords": ["latitude": 1, "longitude": 2]])
        await #expect(throws: CountersignError.self) { try await bgGeo.sync() }
        #expect(await bgGeo.isReauthenticationRequired)
        #expect(try stored().isEmpty)
        bgGeo.setConfig { config in
            config.authorization.accessToken = pair["accessToken"]
            config.authorization.refreshToken = pair["refreshToken"]
        }
        try await bgGeo.sync()
        #expect(try stored() == [uuid])
        await bgGeo.close()
    }

    @Test func changedConfigurationTakesEffectAtOnce() async throws {
        try allow(accessSeconds: 3_600)
        let pair = try await register("device")
        let bgGeo = BGGeo()
        // `ready` starts with the settings made before it.
        bgGeo.config.http.autoSync = true
        bgGeo.config.http.method = .put
        ready(bgGeo, device: "device", pair: ["accessToken": "not.a.token"])
        #expect(bgGeo.config.http.autoSync == false)
        #expect(bgGeo.config.http.method == .put)
        bgGeo.config.http.method = .post
        let uuid = try await bgGeo.insert(["coords": ["latitude": 1, "longitude": 2]])
        await #expect(throws: CountersignError.self) { try await bgGeo.sync() }
        #expect(try stored().isEmpty)

        let authorization = bgGeo.config.authorization
        authorization.accessToken = pair["accessToken"]
        #expect(bgGeo.config.authorization.accessToken == pair["accessToken"])
        try await bgGeo.sync()
        #expect(try stored() == [uuid])
        #expect(bgGeo.configurationProblem == nil)

        // An invalid token changes nothing and is reported.
        authorization.accessToken = "a token with spaces"
        #expect(bgGeo.configurationProblem?.contains("accessToken") == true)
        #expect(bgGeo.config.authorization.accessToken == pair["accessToken"])
        let whole = AuthorizationConfig()
        whole.accessToken = "another.whole.one"
        bgGeo.config.authorization = whole
        #expect(bgGeo.config.authorization.accessToken == "another.whole.one")
        #expect(bgGeo.configurationProblem == nil)
        whole.accessToken = "and.by.reference"
        #expect(bgGeo.config.authorization.accessToken == "and.by.reference")
        await bgGeo.close()
    }
}
