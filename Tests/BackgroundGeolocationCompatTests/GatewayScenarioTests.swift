import BackgroundGeolocationCompat
import Countersign
import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import Testing

/// Against a real gateway and its token service, over real sockets.
@Suite(.timeLimit(.minutes(5)))
struct GatewayScenarioTests {
    private let fixture: GatewayFixture

    init() throws {
        fixture = try GatewayFixture(enforcement: .required)
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
        bgGeo.override { $0.dataDirectory = directory }
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

    /// Tokens that live three seconds, and an app that starts anew in between with the pair of its registration.
    @Test func shortLivedTokensNeverNeedALogin() async throws {
        try allow(accessSeconds: 3)
        try await withThrowingTaskGroup(of: [String].self) { group in
            for number in 0..<4 {
                group.addTask {
                    let device = "device-\(number)"
                    let pair = try await register(device)
                    let refreshes = Lock(0)
                    var uuids: [String] = []
                    for launch in 1...3 {
                        let bgGeo = BGGeo()
                        ready(bgGeo, device: device, pair: pair)
                        bgGeo.onAuthorization { event in
                            #expect(event.isSuccess, "\(event.error?.localizedDescription ?? "")")
                            refreshes.withLock { $0 += 1 }
                        }
                        while refreshes.withLock({ $0 }) < launch, !Task.isCancelled {
                            uuids.append(try await bgGeo.insert(["coords": ["latitude": 1, "longitude": 2]]))
                            // A token may expire between two requests of one call.
                            _ = try? await bgGeo.sync()
                        }
                        #expect(await bgGeo.isReauthenticationRequired == false)
                        await bgGeo.close()
                    }
                    let last = BGGeo()
                    ready(last, device: device, pair: pair)
                    while try await last.count() > 0, !Task.isCancelled { _ = try? await last.sync() }
                    #expect(await last.isReauthenticationRequired == false)
                    await last.close()
                    return uuids
                }
            }
            var uuids: [String] = []
            for try await some in group { uuids += some }
            #expect(try stored().sorted() == uuids.sorted())
        }
    }

    @Test func revokedSessionEndsInAStateThatIsVisible() async throws {
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

    @Test func whatIsAssignedToTheConfigurationTakesEffectAtOnce() async throws {
        try allow(accessSeconds: 3_600)
        let pair = try await register("device")
        let bgGeo = BGGeo()
        // Before `ready` it is what `ready` begins with.
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

        // What cannot work changes nothing, and says why.
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
