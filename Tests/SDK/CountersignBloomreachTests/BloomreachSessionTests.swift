import CountersignCore
import CountersignDelivery
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import CountersignBloomreach

@Suite(.closing, .timeLimit(.minutes(5)))
struct BloomreachSessionTests {
    /// The type, session properties and time of each sent event.
    private func events(_ device: BloomreachDevice) async -> [String] {
        await device.client.flush()
        return device.requests.compactMap { request in
            guard let type = request.json["event_type"] as? String else { return nil }
            let properties = request.json["properties"] as? [String: Any] ?? [:]
            let time = (request.json["timestamp"] as? Double ?? 0) - 1_750_000_000
            let more = properties["duration"] as? Double ?? (properties["valid"] as? Bool).map { $0 ? 1 : 0 }
            return "\(type) at \(Int(time))" + (more.map { " (\(Int($0)))" } ?? "")
        }
    }

    @Test func sessionsStartedByTheAppAreRecordedWithAnInstallationEvent() async throws {
        let device = try BloomreachDevice()
        device.client.startSession()
        device.clock.advance(by: 5)
        // An open session continues.
        device.client.startSession()
        device.clock.advance(by: 5)
        device.client.endSession()
        device.client.endSession()
        #expect(
            await events(device) == ["installation at 0", "session_start at 0", "session_end at 10 (10)"])
        let properties = try #require(device.requests[1].json["properties"] as? [String: Any])
        #expect(properties["platform"] as? String == "ios")
        #expect(properties["sdk"] as? String == "countersign-swift")
        #expect(properties["sdk_version"] as? String == SDKVersion.current)
    }

    @Test func aSessionContinuesAfterARestartWithinItsTimeout() async throws {
        var device = try BloomreachDevice()
        device.client.pipeline.enterForeground()
        device.clock.advance(by: 10)
        device.client.pipeline.enterBackground()
        device.clock.advance(by: 59)
        // Within the time-out it is the same session, also in another process.
        device = try await device.restarted()
        device.client.pipeline.enterForeground()
        device.clock.advance(by: 10)
        device.client.pipeline.enterBackground()
        device.clock.advance(by: 61)
        device = try await device.restarted()
        device.client.pipeline.enterForeground()
        #expect(
            await events(device) == [
                "installation at 0", "session_start at 0", "session_end at 79 (79)", "session_start at 140",
            ])
    }

    @Test func withoutAutomaticTrackingOnlyTheAppStartsSessions() async throws {
        let device = try BloomreachDevice {
            $0.automaticSessionTracking = false
            $0.manualSessionAutoClose = false
            $0.sessionTimeout = 20
        }
        device.client.pipeline.enterForeground()
        device.client.startSession()
        device.client.pipeline.enterBackground()
        device.clock.advance(by: 30)
        device.client.pipeline.enterForeground()
        device.client.startSession()
        #expect(
            await events(device) == ["installation at 0", "session_start at 0", "session_start at 30"],
            "an earlier session that timed out has no end")
    }

    enum Return: CaseIterable {
        case foregroundThenActive, activeAlone, started, startedTwice
    }

    /// A session times out in the background only.
    @Test(arguments: Return.allCases, [true, false])
    func aForegroundSessionDoesNotTimeOut(_ kind: Return, isAutomatic: Bool) async throws {
        let device = try BloomreachDevice { $0.automaticSessionTracking = isAutomatic }
        if isAutomatic { device.client.pipeline.enterForeground() } else { device.client.startSession() }
        device.clock.advance(by: 100)
        switch kind {
        case .foregroundThenActive:
            device.client.pipeline.enterBackground()
            device.clock.advance(by: 20)
            device.client.pipeline.enterForeground()
            device.client.sessionEvent(.appActive)
            device.clock.advance(by: 80)
        case .activeAlone:
            device.client.sessionEvent(.appActive)
            device.clock.advance(by: 100)
        case .started:
            device.client.startSession()
            device.clock.advance(by: 100)
        case .startedTwice:
            for _ in 0..<2 {
                device.client.startSession()
                device.clock.advance(by: 50)
            }
        }
        device.client.endSession()
        #expect(
            await events(device) == ["installation at 0", "session_start at 0", "session_end at 200 (200)"])
    }

    @Test func aTimedOutAppSessionEndsAtItsBackgroundTime() async throws {
        let device = try BloomreachDevice { $0.automaticSessionTracking = false }
        device.client.startSession()
        device.clock.advance(by: 50)
        device.client.pipeline.enterBackground()
        device.clock.advance(by: 500)
        device.client.pipeline.enterForeground()
        device.client.startSession()
        #expect(
            await events(device) == [
                "installation at 0", "session_start at 0", "session_end at 50 (50)", "session_start at 550",
            ])
    }

    /// On some systems a process ends without a background notification, so closing the client counts as one.
    @Test func aTimedOutSessionEndsAtTheTimeItsClientWasClosed() async throws {
        var device = try BloomreachDevice { $0.automaticSessionTracking = false }
        device.client.startSession()
        device.clock.advance(by: 50)
        device = try await device.restarted()
        device.clock.advance(by: 20)
        device.client.startSession()
        device.clock.advance(by: 30)
        device = try await device.restarted()
        device.clock.advance(by: 500)
        device.client.startSession()
        #expect(
            await events(device) == [
                "installation at 0", "session_start at 0", "session_end at 100 (100)", "session_start at 600",
            ])
    }

    /// A process that is killed in the foreground stores no session end. Event times are stored every ten seconds.
    @Test func aSessionOfAKilledProcessEndsAtItsLastStoredEventTime() throws {
        var state = BloomreachDeviceState()
        _ = state.start(now: 0, timeout: 60, closesEarlier: true)
        for second in 1...75 { state.recorded(now: Double(second)) }
        var next = try JSONDecoder().decode(BloomreachDeviceState.self, from: try JSONEncoder().encode(state))
        let change = next.start(now: 1_000, timeout: 60, closesEarlier: true)
        #expect(change.ended?.at == 70)
        #expect(change.ended?.duration == 70)
        #expect(change.began == 1_000)
    }

    @Test func aWipedClientWritesNoFiles() async throws {
        let device = try BloomreachDevice()
        device.client.startSession()
        device.client.trackPushToken("aa")
        try await device.client.wipeData()
        device.client.startSession()
        device.client.trackPushToken("bb")
        _ = try await device.client.fetchAppInbox()
        await device.client.close()
        for name in ["device.json", "inbox.json"] {
            let file = device.client.pipeline.settings.directory.appendingPathComponent(name)
            #expect(!FileManager.default.fileExists(atPath: file.path))
        }
    }

    @Test func anonymizingEndsTheSessionForTheEarlierCustomer() async throws {
        let device = try BloomreachDevice()
        device.client.identifyCustomer(["registered": "ada"])
        device.client.startSession()
        device.client.trackPushToken(Data([0x0A, 0xFF]))
        device.client.anonymize()
        #expect(
            await events(device) == [
                "installation at 0", "session_start at 0", "notification_state at 0 (1)",
                "session_end at 0 (0)", "notification_state at 0 (0)", "installation at 0",
                "session_start at 0", "notification_state at 0 (1)",
            ])
        let customers = device.requests.filter { $0.json["event_type"] != nil }.map { request in
            (request.json["customer_ids"] as? [String: String])?["registered"]
        }
        #expect(customers == Array(repeating: "ada", count: 5) + [nil, nil, nil])
        let push = try #require(device.requests.last?.json["properties"] as? [String: Any])
        #expect(push["push_notification_token"] as? String == "0aff")
    }

    @Test(arguments: [
        (PushTokenFrequency.onTokenChange, 2), (.everyLaunch, 4), (.daily, 3),
    ])
    func pushTokensAreSentAsOftenAsConfigured(frequency: PushTokenFrequency, count: Int)
        async throws
    {
        let device = try BloomreachDevice { $0.pushTokenFrequency = frequency }
        device.client.trackPushToken("aa")
        device.client.trackPushToken("aa")
        device.clock.advance(by: 86_400)
        device.client.trackPushToken("aa")
        device.client.trackPushToken("bb")
        #expect(await events(device).count == count)
        // The user has revoked the permission. This is sent once.
        device.client.trackPushToken(nil)
        device.client.trackPushToken(nil)
        #expect(await events(device).count == count + 1)
    }

    @Test func aPushTokenIsSentAgainAfterTheClockWasAhead() async throws {
        let device = try BloomreachDevice { $0.pushTokenFrequency = .daily }
        let now = device.clock.now
        device.clock.advance(by: 365 * 86_400)
        device.client.trackPushToken("aa")
        device.clock.setNow(now)
        device.client.trackPushToken("aa")
        #expect(await events(device).count == 2)
    }

    @Test func eachSettingWithoutEffectIsLoggedOnce() async throws {
        var map: JSONObject = [
            "projectToken": "p", "authorizationToken": "key", "baseUrl": "https://api.example",
            "flushMaxRetries": 10, "requirePushAuthorization": true, "logLevel": "info",
            "ios": ["appGroup": "group.x", "requirePushAuthorization": nil], "colour": "red",
            "projectMapping": [
                "SESSION_START": [["projectToken": "q", "authorizationToken": "key"]],
                "PUSH_OPENED": [["projectToken": "q", "authorizationToken": "key"]],
            ],
            "android": ["pushIcon": 7], "appGroup": nil,
        ]
        map["sessionTimeout"] = 20
        map["automaticSessionTracking"] = false
        map["manualSessionAutoClose"] = false
        map["pushTokenTrackingFrequency"] = "EVERY_LAUNCH"
        let configuration = try BloomreachConfiguration(map: map)
        #expect(configuration.sessionTimeout == 20)
        #expect(!configuration.automaticSessionTracking && !configuration.manualSessionAutoClose)
        #expect(configuration.pushTokenFrequency == .everyLaunch)
        #expect(configuration.logLevel == .info)
        let device = try BloomreachDevice { given in
            given.given = configuration.given
            given.projectMapping = configuration.projectMapping
        }
        #expect(
            device.lines.withLock { $0 } == [
                "android.pushIcon has no effect: the SDK does not display notifications",
                "colour has no effect: there is no such setting",
                "flushMaxRetries has no effect: the SDK retries events without a limit",
                "ios.appGroup has no effect: each app extension has its own queue",
                "requirePushAuthorization has no effect: the app passes its push token to trackPushToken",
                "projectMapping of PUSH_OPENED has no effect: the SDK records nothing of that kind",
            ])
    }

    @Test func logLevelNoneInAMapTurnsTheLogOff() throws {
        let configuration = try BloomreachConfiguration(
            map: ["projectToken": "p", "authorizationToken": "key", "logLevel": "none"])
        #expect(configuration.logLevel == nil)
    }

    @Test func nullInAMapCountsAsMissing() throws {
        let configuration = try BloomreachConfiguration(map: [
            "projectToken": "p", "authorizationToken": nil, "authorization": "Token key",
            "applicationId": nil, "applicationID": "shop", "automaticSessionTracking": nil,
            "autoSessionTracking": false, "pushTokenTrackingFrequency": nil, "tokenTrackFrequency": "daily",
            "projectMapping": [
                "SESSION_START": [
                    ["projectToken": "q", "authorizationToken": nil, "authorization": "Token other"]
                ],
                "SESSION_END": nil,
            ],
        ])
        #expect(configuration.project.apiKey == "key")
        #expect(configuration.applicationID == "shop")
        #expect(!configuration.automaticSessionTracking)
        #expect(configuration.pushTokenFrequency == .daily)
        #expect(configuration.projectMapping.mapValues { $0.map(\.apiKey) } == [.sessionStart: ["other"]])
    }

    @Test(arguments: [
        ("sessionTimeout", JSONValue.integer(-1), "sessionTimeout must be seconds, 0 or more"),
        ("pushTokenTrackingFrequency", "WEEKLY", "ON_TOKEN_CHANGE, EVERY_LAUNCH or DAILY"),
        ("logLevel", "loud", "logLevel must be debug, info, warning or none"),
        ("projectToken", 7, "projectToken must be a text"),
        ("projectToken", nil, "projectToken must be given"),
        ("authorizationToken", nil, "authorizationToken must be given"),
        ("advancedAuthEnabled", 7, "advancedAuthEnabled must be true or false"),
        ("projectMapping", 7, "projectMapping must be an object"),
        ("flushMode", 7, "flushMode must be a text"),
    ])
    func anInvalidSettingIsNamedInTheError(key: String, value: JSONValue, detail: String) {
        var map: JSONObject = ["projectToken": "p", "authorizationToken": "key"]
        map[key] = value
        let error = #expect(throws: CountersignError.self) { try BloomreachConfiguration(map: map) }
        #expect(error?.detail.contains(detail) == true)
    }

    @Test(arguments: [("ios", AuthorizationProviderDiscovery.Wording.ios), ("android", .android)])
    func thePlatformSettingSelectsTheLogTexts(
        platform: String, wording: AuthorizationProviderDiscovery.Wording
    ) throws {
        let configuration = try BloomreachConfiguration(
            map: ["projectToken": "p", "authorizationToken": "key", "platform": .string(platform)])
        #expect(configuration.wording == wording)
    }
}
