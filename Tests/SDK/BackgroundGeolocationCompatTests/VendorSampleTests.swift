import BackgroundGeolocationCompat
import CountersignCore
import CountersignDelivery
import CountersignTesting
import CountersignTransport
import Foundation
import SDKTestSupport
import Testing

/// Runs Transistorsoft's samples with in-memory servers at the addresses in the samples.
@Suite(.serialized, .timeLimit(.minutes(5)))
@MainActor
struct VendorSampleTests {
    private let folder = TemporaryFolder()
    private var directory: URL { folder.url }
    private let record: [String: Any] = ["coords": ["latitude": 46.05, "longitude": 14.51]]

    /// Runs `sample` on the shared instance, like a launch of an app.
    private func start(
        _ sample: () -> Void, server: @escaping @Sendable (TransportRequest) -> TransportResponse
    ) -> ScriptedTransport {
        let transport = ScriptedTransport { server($0) }
        BGGeo.shared.override {
            $0.dataDirectory = directory
            $0.transport = transport
        }
        sample()
        return transport
    }

    private func finish() async { await BGGeo.shared.close() }

    @Test func theOverviewSampleRefreshesItsTokenAndDelivers() async throws {
        let transport = start(VendorSamples.overview) { request in
            switch (request.url.absoluteString, request.header("Authorization")) {
            case ("https://auth.your.server.com/tokens", _):
                .json(
                    200,
                    #"{"token":{"access_token":"XXX.YYY.ZZZ","expires_at":3900},"refresh_token":"smTsfaspfgaadsfgqZerUt0wueflasdfkaxjdfeKIacb"}"#
                )
            case (_, "Bearer XXX.YYY.ZZZ"): .json(200, "")
            default: .json(401, "")
            }
        }
        #expect(BGGeo.shared.configurationProblem == nil)
        let (events, continuation) = AsyncStream<Bool>.makeStream()
        // Discarding the result does not end the subscription.
        BGGeo.shared.onAuthorization { event in
            #expect(event.status == 200)
            #expect(event.error == nil)
            #expect(
                event.response["refresh_token"] as? String == "smTsfaspfgaadsfgqZerUt0wueflasdfkaxjdfeKIacb")
            #expect((event.response["token"] as? [String: Any])?["expires_at"] as? Int == 3_900)
            let response: [String: Any] = event.response
            #expect(response.count == 2)
            #expect(!"\(event)".contains("XXX") && !"\(event)".contains("smTs"))
            continuation.yield(event.isSuccess)
        }
        try await BGGeo.shared.insert(record)
        // `autoSync` sends without a call of `sync`.
        await transport.waitForRequests(3)
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == true)
        let requests = transport.requests
        #expect(
            requests.map { $0.url.absoluteString } == [
                "https://app.your.server.com/users/locations", "https://auth.your.server.com/tokens",
                "https://app.your.server.com/users/locations",
            ])
        #expect(requests[0].header("Authorization") == "Bearer my-auth-token")
        #expect(requests[1].header("Authorization") == "Bearer my-auth-token")
        #expect(
            String(decoding: requests[1].body, as: UTF8.self)
                == "the_refresh_token_field_name=my-refresh-token")
        // Waits until the result of the upload is on disk.
        try await BGGeo.shared.sync()
        #expect(try await BGGeo.shared.count() == 0)
        #expect(transport.requests.count == 3)
        await finish()
    }

    @Test func aSubscriptionThatIsNotKeptStillReceivesFailures() async throws {
        let transport = start({
            VendorSamples.authorizationEvents()
            VendorSamples.overview()
        }) { request in
            request.url.host == "auth.your.server.com"
                ? .json(400, #"{"error":"invalid_grant","error_description":"Log in again."}"#)
                : .json(401, "")
        }
        let (errors, continuation) = AsyncStream<String>.makeStream()
        BGGeo.shared.onAuthorization { event in
            continuation.yield("\(event.isSuccess) \(event.error?.localizedDescription ?? "")")
        }
        let (statuses, statusContinuation) = AsyncStream<Int>.makeStream()
        BGGeo.shared.onHttp { event in statusContinuation.yield(event.statusCode) }
        try await BGGeo.shared.insert(record)
        await transport.waitForRequests(2)
        var iterator = errors.makeAsyncIterator()
        #expect(await iterator.next() == "false invalid_grant: the server answered 400: Log in again.")
        var statusIterator = statuses.makeAsyncIterator()
        #expect(await statusIterator.next() == 401)
        #expect(await BGGeo.shared.isReauthenticationRequired)
        await #expect(throws: CountersignError.self) { try await BGGeo.shared.sync() }
        #expect(transport.requests.count == 2)

        // New credentials from a sign-in.
        transport.setHandler { request in
            request.header("Authorization") == "Bearer fresh" ? .json(200, "") : .json(401, "")
        }
        BGGeo.shared.setConfig { config in
            config.authorization.accessToken = "fresh"
            config.authorization.refreshToken = "fresh-refresh"
        }
        try await BGGeo.shared.sync()
        #expect(try await BGGeo.shared.count() == 0)
        await finish()
    }

    /// The inner `ready` is complete before the outer one's closure returns. This simulates two threads.
    @Test func twoSimultaneousStartsMakeOneClientWithBothSettings() async throws {
        let transport = start({
            var isAlone = true
            BGGeo.shared.ready { config in
                config.http.url = "https://app.domain.com/locations"
                if isAlone { BGGeo.shared.ready { $0.authorization.accessToken = "token" } }
                isAlone = false
            }
        }) { _ in .json(200, "") }
        try await BGGeo.shared.insert(record)
        await transport.waitForRequests(1)
        #expect(transport.requests.map { $0.header("Authorization") } == ["Bearer token"])
        await finish()
    }

    @Test func withEmptyRefreshHeadersOnlyContentTypeIsSent() async throws {
        let transport = start({
            VendorSamples.refreshHeaders()
            BGGeo.shared.setConfig { config in
                config.http.url = "https://app.domain.com/locations"
                config.http.autoSync = false
            }
        }) { request in
            request.url.host == "auth.domain.com"
                ? .json(200, #"{"accessToken":"A1","refreshToken":"R1","expiry":3900}"#)
                : request.header("Authorization") == "Bearer A1" ? .json(200, "") : .json(401, "")
        }
        try await BGGeo.shared.insert(record)
        #expect(try await BGGeo.shared.sync().count == 1)
        let refresh = try #require(transport.requests.first { $0.url.host == "auth.domain.com" })
        #expect(refresh.headers.map(\.name) == ["Content-Type"])
        #expect(
            String(decoding: refresh.body, as: UTF8.self)
                == "foo=another%20arbitrary%20field&grant_type=refresh_token&my_refresh_token=smTsfaspfgaadsfgqZerUt0wueflasdfkaxjdfeKIacb"
        )
        await finish()
    }

    /// Each launch calls `ready` with the default `reset` and the original tokens. The access token expires
    /// between launches.
    @Test func rotatedPairSurvivesEveryLaunch() async throws {
        let seed = "smTsfaspfgaadsfgqZerUt0wueflasdfkaxjdfeKIacb"
        let serial = Lock(0)
        for launch in 0..<4 {
            let transport = start({
                VendorSamples.refreshPayload()
                BGGeo.shared.setConfig { config in
                    config.http.url = "https://app.your.server.com/users/locations"
                    config.http.autoSync = false
                }
            }) { request in
                if request.url.host == "app.your.server.com" {
                    return request.header("Authorization") == "Bearer A\(launch + 1)"
                        ? .json(200, "") : .json(401, "")
                }
                let wanted = launch == 0 ? seed : "R\(launch)"
                guard String(decoding: request.body, as: UTF8.self).hasSuffix("my_refresh_token=\(wanted)")
                else { return .json(400, #"{"error":"invalid_grant"}"#) }
                serial.withLock { $0 += 1 }
                return .json(200, #"{"access_token":"A\#(launch + 1)","refresh_token":"R\#(launch + 1)"}"#)
            }
            try await BGGeo.shared.insert(record)
            try await BGGeo.shared.sync()
            #expect(
                transport.requests.map { $0.header("Authorization") }.first
                    == (launch == 0 ? "Bearer XXX.YYY.ZZZ" : "Bearer A\(launch)"))
            #expect(serial.withLock { $0 } == launch + 1)
            await BGGeo.shared.close()
        }
        await finish()
    }

    @Test func recordsCanBeListedAndRemoved() async throws {
        _ = start(VendorSamples.refreshPayload) { _ in .json(500, "") }
        let (locations, continuation) = AsyncStream<String>.makeStream()
        let subscription = BGGeo.shared.onLocation { event in
            #expect(event.coords.latitude == 46.05)
            #expect(event.coords.speed == -1)
            continuation.yield(event.uuid)
        }
        let uuid = try await BGGeo.shared.insert(record)
        var iterator = locations.makeAsyncIterator()
        #expect(await iterator.next() == uuid)
        subscription.cancel()
        try await BGGeo.shared.insert(record)
        #expect(try await BGGeo.shared.count() == 2)
        let all = try await BGGeo.shared.getLocations()
        #expect(all.first?["uuid"] as? String == uuid)
        #expect(try await BGGeo.shared.destroy(uuid))
        #expect(try await BGGeo.shared.destroy(uuid) == false)
        try await BGGeo.shared.destroyLocations()
        #expect(try await BGGeo.shared.count() == 0)
        await #expect(throws: CountersignError.self) { try await BGGeo.shared.sync() }
        await finish()
        await #expect(throws: CountersignError.self) { try await BGGeo.shared.insert(record) }
    }

    @Test func aPartialConfigurationUpdateKeepsOtherValues() {
        let config = AuthorizationConfig()
        #expect(config.expires == -1)
        config.accessToken = "a"
        config.refreshPayload = ["x": "{refreshToken}", "n": 7, "o": ["p": true]]
        config.update(with: [
            "strategy": "sas", "refreshToken": "r", "expires": 60, "refreshHeaders": ["X": "1"], "unknown": 1,
            "accessToken": 17, "refreshPayload": ["y": "z"],
        ])
        #expect(config.strategy == .sas)
        #expect(config.accessToken == "a")
        #expect(config.refreshToken == "r")
        #expect(config.expires == 60)
        #expect(config.refreshPayload?["n"] as? Int == 7)
        #expect(config.refreshPayload?["y"] as? String == "z")
        config.update(with: ["refreshHeaders": [String: String](), "accessToken": NSNull()])
        #expect(config.refreshHeaders == [:])
        #expect(config.accessToken == nil)
        #expect(config.refreshUrl == nil)
    }

    // MARK: Stored settings

    @Test func withoutResetTheSettingsOfTheLastRunApplyWithNewTokens() async throws {
        let transport = ScriptedTransport { request in
            request.header("Authorization") == "Bearer second-token" ? .json(200, "") : .json(401, "")
        }
        func launch(_ reset: Bool, _ configure: (Config) -> Void) -> BGGeo {
            let geo = BGGeo()
            geo.override { overrides in
                overrides.dataDirectory = directory
                overrides.transport = transport
            }
            geo.ready(reset: reset, configure)
            return geo
        }
        let first = launch(false) { config in
            config.http.url = "https://app.your.server.com/users/locations"
            config.http.autoSync = false
            config.http.headers = ["X-Team": "blue"]
            config.http.params = ["n": 1]
            config.persistence.extras = ["a": ["b"]]
            config.persistence.timestampFormat = "epoch"
            config.authorization.strategy = "SAS"
            config.authorization.accessToken = "first-token"
            config.authorization.refreshPayload = ["t": "{refreshToken}"]
            config.authorization.refreshHeaders = [:]
        }
        // Changes after `ready` are stored too.
        first.config.http.method = .put
        first.config.edit { config in
            config.authorization.strategy = .jwt
            config.authorization.refreshStatuses = [403]
        }
        await first.close()

        let second = launch(false) { config in
            config.http.url = "https://elsewhere.example"
            config.authorization.accessToken = "second-token"
        }
        #expect(second.config.http.url == "https://app.your.server.com/users/locations")
        #expect(second.config.http.method == .put)
        #expect(second.config.http.headers as? [String: String] == ["X-Team": "blue"])
        #expect(second.config.http.params["n"] as? Int == 1)
        #expect(second.config.persistence.extras["a"] as? [String] == ["b"])
        #expect(second.config.persistence.timestampFormat == "epoch")
        #expect(second.config.authorization.strategy == .jwt)
        #expect(second.config.authorization.refreshHeaders == [:])
        #expect(second.config.authorization.refreshStatuses == [403])
        try await second.insert(record)
        try await second.sync()
        #expect(transport.requests.last?.header("Authorization") == "Bearer second-token")
        #expect(transport.requests.last?.header("X-Team") == "blue")
        // Tokens are not stored with the settings.
        let file = directory.appendingPathComponent("background-geolocation/settings.json")
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(!text.contains("second-token") && !text.contains("first-token"))
        await second.close()

        let third = launch(true) { config in config.http.url = "https://elsewhere.example" }
        #expect(third.config.http.url == "https://elsewhere.example")
        #expect(third.config.http.headers.isEmpty)
        await third.close()
        await finish()
    }

    @Test func valuesOfHeaderFieldsAreSentWithoutTheirSwiftTypes() async {
        let geo = BGGeo()
        geo.override { $0.dataDirectory = directory }
        geo.ready(reset: true) { _ in }
        let config = geo.config
        let (team, none): (String?, String?) = ("blue", nil)
        config.http.headers = ["X-Team": team as Any, "X-None": none as Any, "X-Version": 7, "X-Beta": true]
        #expect(
            config.http.headers as? [String: String] == [
                "X-Team": "blue", "X-Version": "7", "X-Beta": "true",
            ])
        config.http.params = [
            "team": team as Any, "none": none as Any, "at": Date(timeIntervalSince1970: 0.007),
        ]
        #expect(config.http.params["team"] as? String == "blue")
        #expect(config.http.params["none"] is NSNull)
        #expect(config.http.params["at"] as? String == "1970-01-01T00:00:00.007Z")
        config.authorization.update(with: ["refreshHeaders": ["X-Team": team as Any, "X-Version": 7]])
        #expect(config.authorization.refreshHeaders == ["X-Team": "blue", "X-Version": "7"])
        await geo.close()
    }

    @Test func theConfigurationHasTheNewTokensAfterARefresh() async throws {
        _ = start(VendorSamples.overview) { request in
            switch (request.url.host, request.header("Authorization")) {
            case ("auth.your.server.com", _):
                .json(200, #"{"access_token":"A.B.C","refresh_token":"R2"}"#)
            case (_, "Bearer A.B.C"): .json(200, "")
            default: .json(401, "")
            }
        }
        BGGeo.shared.config.http.autoSync = false
        #expect(BGGeo.shared.config.authorization.accessToken == "my-auth-token")
        try await BGGeo.shared.insert(record)
        try await BGGeo.shared.sync()
        #expect(BGGeo.shared.config.authorization.accessToken == "A.B.C")
        #expect(BGGeo.shared.config.authorization.refreshToken == "R2")
        // Changing another setting does not restore the old tokens.
        BGGeo.shared.config.http.params = ["x": 1]
        try await BGGeo.shared.insert(record)
        try await BGGeo.shared.sync()
        #expect(BGGeo.shared.config.authorization.accessToken == "A.B.C")
        await BGGeo.shared.forgetTokens()
        #expect(BGGeo.shared.config.authorization.accessToken == nil)
        await finish()
    }

    @Test func aRefreshPayloadWithoutThePlaceholderIsReportedOnce() async throws {
        let lines = Lock<[String]>([])
        BGGeo.shared.override {
            $0.log = CountersignLog(isEnabled: { $0 == .warning }) { _, line, _ in
                lines.withLock { $0.append(line) }
            }
        }
        _ = start({
            BGGeo.shared.ready { config in
                config.authorization.refreshPayload = [
                    "token": "my-refresh-token", "deep": ["x": "refreshToken"],
                ]
            }
        }) { _ in .json(500, "") }
        BGGeo.shared.config.http.params = ["x": 1]
        #expect(lines.withLock { $0.filter { $0.contains("{refreshToken}") } }.count == 1)
        BGGeo.shared.config.authorization.refreshPayload = ["deep": ["x": "Bearer {refreshToken}"]]
        #expect(lines.withLock { $0.filter { $0.contains("{refreshToken}") } }.count == 1)
        BGGeo.shared.config.http.method = "GET"
        #expect(lines.withLock { $0.last } == "the settings are invalid")
        #expect(BGGeo.Overrides().log != nil)
        BGGeo.shared.override { $0.log = nil }
        await finish()
    }

    /// Names and forms of the vendor's Swift interface.
    @Test func theVendorsOwnNamesCompile() async throws {
        let geo = BGGeo()
        geo.override { $0.dataDirectory = directory }
        var cancellables = Set<BGGeo.EventSubscription>()
        geo.onHttp { (_: BGGeo.HttpEvent) in }.store(in: &cancellables)
        geo.onAuthorization { (event: BGGeo.AuthorizationEvent) in
            let error: NSError? = event.error
            print(event.response, error ?? "")
        }.store(in: &cancellables)
        #expect(cancellables.count == 2)
        let token = BGGeo.TransistorToken(
            accessToken: "a.b.c", refreshToken: "secret", apiUrl: "https://app.domain.com/api/locations",
            refreshUrl: "https://app.domain.com/api/refresh_token")
        geo.ready(reset: false, transistorAuthorizationToken: token) { config in
            config.http.autoSync = false
            config.persistence.extras = ["config-extra": "CONFIG"]
        }
        let config: BGGeo.Config = geo.config
        #expect(config.http.url == "https://app.domain.com/api/locations")
        #expect(config.authorization.refreshToken == "secret")
        #expect(!"\(token)".contains("secret"))
        let strategy: BGGeo.AuthorizationStrategy? = config.authorization.strategy
        switch strategy {
        case .jwt: break
        case .sas, nil: Issue.record("not JWT")
        }
        #expect(try await geo.store.insert(record).isEmpty == false)
        #expect(try await geo.store.count == 1)
        #expect(try await geo.store.all().count == 1)
        try await geo.store.destroyAll()
        #expect(try await geo.store.count == 0)
        config.reset()
        #expect(config.http.url.isEmpty && config.persistence.extras.isEmpty)
        #expect(config.authorization.accessToken == "a.b.c")
        let next = BGGeo.TransistorToken(
            accessToken: "d.e.f", refreshToken: "next", apiUrl: token.apiUrl, refreshUrl: token.refreshUrl)
        geo.ready(transistorAuthorizationToken: next) { _ in }
        #expect(geo.config.authorization.refreshToken == "next")
        await geo.close()
        await finish()
    }
}
