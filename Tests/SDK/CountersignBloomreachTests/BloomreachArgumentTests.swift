import CountersignCore
import CountersignDelivery
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import CountersignBloomreach

/// Invalid arguments and answers, and rules of sessions and customer tokens.
@Suite(.closing, .timeLimit(.minutes(5)))
struct BloomreachArgumentTests {
    private func device(answering body: String) throws -> BloomreachDevice {
        try BloomreachDevice(server: ScriptedTransport { _ in .json(200, body) })
    }

    // MARK: Calls

    @Test(arguments: [0, -1, .nan] as [TimeInterval])
    func aProviderTimeoutThatIsNotPositiveIsRejected(timeout: TimeInterval) throws {
        var configuration = BloomreachConfiguration(project: try BloomreachDevice.project())
        configuration.authorizationProviderTimeout = timeout
        let error = #expect(throws: CountersignError.self) {
            try BloomreachClient(configuration: configuration)
        }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test func anEventWithoutATypeIsNotRecorded() async throws {
        let device = try BloomreachDevice()
        device.client.trackEvent("")
        device.client.trackEvent("named")
        await device.client.flush()
        #expect(device.requests.map { $0.json["event_type"] as? String } == ["named"])
        #expect(device.lines.withLock { $0 } == ["an event without a type is not recorded"])
    }

    @Test func aSelfCheckWithoutAPushTokenSendsNothing() async throws {
        let device = try BloomreachDevice()
        #expect(await code { _ = try await device.client.sendSelfCheck(pushToken: "") } == .invalidArgument)
        #expect(device.requests.isEmpty)
    }

    @Test func aMessageWithoutACustomerIsNotMarked() async throws {
        let device = try BloomreachDevice()
        let message = try #require(
            AppInboxMessage(["id": "m1"], customerIDs: [:], syncToken: "s", projectToken: "p"))
        #expect(await code { _ = try await device.client.markAsRead(message) } == .unknownMessage)
        #expect(device.requests.isEmpty)
    }

    @Test(arguments: ["Basic cHVibGljOnByaXZhdGU=", "Bearer c2VjcmV0"])
    func aPrivateKeyIsRejectedAndIsNotInTheError(authorization: String) {
        let error = #expect(throws: CountersignError.self) {
            try BloomreachConfiguration(
                map: ["projectToken": "p", "authorizationToken": .string(authorization)])
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(error.map { "\($0)" }?.contains(authorization.dropFirst(7)) == false)
    }

    @Test func nullMembersOfAMapAreIgnored() throws {
        let configuration = try BloomreachConfiguration(
            map: [
                "projectToken": "p", "authorizationToken": "key", "baseUrl": nil, "projectMapping": nil,
                "sessionTimeout": nil, "ios": ["appGroup": "group", "other": nil], "android": [:],
                "unknown": nil, "other": ["member": 1],
            ])
        #expect(configuration.project.baseURL.host == "api.exponea.com")
        #expect(configuration.given.sorted() == ["android", "ios.appGroup", "other"])
    }

    // MARK: Sessions

    /// The app and the system may both report entering the background.
    @Test func aSessionEndsAtTheFirstBackgroundNotification() throws {
        var state = BloomreachDeviceState()
        _ = state.start(now: 100, timeout: 20)
        state.enterBackground(now: 110)
        state.enterBackground(now: 125)
        let change = state.start(now: 131, timeout: 20)
        let ended = try #require(change.ended)
        #expect((ended.at, ended.duration) == (110, 10))
        #expect(change.began == 131)
    }

    @Test(arguments: [false, true])
    func automaticSessionTrackingFollowsTheConfiguration(isAutomatic: Bool) async throws {
        let device = try BloomreachDevice { $0.automaticSessionTracking = isAutomatic }
        device.client.sessionEvent(.appActive)
        await device.client.flush()
        let types = device.requests.compactMap { $0.json["event_type"] as? String }
        #expect(types == ["installation"] + (isAutomatic ? ["session_start"] : []))
    }

    // MARK: Answers

    @Test(arguments: ["", #""results":[],"#, #""results":[{"success":true},{"success":true}],"#])
    func anAnswerWithAWrongNumberOfResultsIsAnError(results: String) async throws {
        let device = try device(answering: #"{\#(results)"success":true}"#)
        #expect(
            await code { _ = try await device.client.fetchAttributes([.property("name")]) } == .notUnderstood)
    }

    @Test func entriesWithoutAnIDAreSkipped() async throws {
        let members = [#"{"id":""}"#, "{}", #"{"id":7}"#, "7", #"{"id":"good"}"#].joined(separator: ",")
        let device = try device(
            answering: #"{"success":true,"results":[\#(members)],"data":[\#(members)],"#
                + #""messages":[\#(members)],"sync_token":"s"}"#)
        #expect(try await device.client.fetchConsents().map(\.id) == ["good"])
        #expect(try await device.client.fetchInAppMessages().map(\.id) == ["good"])
        #expect(try await device.client.fetchAppInbox().map(\.id) == ["good"])
    }

    // MARK: Customer tokens

    @Test func aCancelledTaskDoesNotCallTheProvider() async {
        let provider = SampleProvider()
        let coordinator = CustomerTokenCoordinator(
            provider: .instance(provider), timeout: 10, clock: ManualClock())
        let outcome = await Task { () -> CustomerTokenCoordinator.Outcome in
            withUnsafeCurrentTask { $0?.cancel() }
            return await coordinator.token(for: [:])
        }.value
        #expect(outcome == .cancelled)
        #expect(provider.calls.withLock { $0 } == 0)
    }
}
