import BrazeCompat
import CountersignGateway
import CountersignGatewayTesting
import Foundation
import Testing

/// Runs Braze's own samples with a real gateway over a real socket.
@Suite(.serialized, .timeLimit(.minutes(5)))
@MainActor
struct VendorScenarioTests {
    private func stored(_ fixture: GatewayFixture) throws -> [String] {
        try fixture.rows("name", where: "name NOT IN ('ss', 'se')").compactMap(\.[0])
    }

    @Test func samplesRunWithPlaceholders() {
        VendorSamples.enable()
        #expect(AppDelegate.braze?.configurationProblem != nil, "the placeholder is not a host name")
        VendorSamples.changeUser()
        VendorSamples.setSignature()
    }

    @Test func expiredSignatureIsRefreshedThroughTheDelegateAndEverythingArrivesOnce() async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let fresh = try fixture.token(for: "userId")
        let delegate = SampleDelegate { _ in fresh }
        VendorSamples.register(delegate, configuration: fixture.brazeConfiguration)
        let braze = try #require(AppDelegate.braze)
        let expired = try fixture.token(for: "userId", lifetime: -600)
        braze.changeUser(userId: "userId", sdkAuthSignature: expired)
        for number in 0..<5 { braze.logCustomEvent(name: "event \(number)", properties: ["n": number]) }
        _ = await braze.flush()
        await delegate.waitForError()
        #expect(await braze.flush())

        let error = try #require(delegate.errors.first)
        #expect(delegate.errors.count == 1)
        #expect(error.code == 22)
        #expect(error.reason == "EXPIRED")
        #expect(error.userId == "userId")
        #expect(error.signature == expired)
        #expect(error.optional == false)
        #expect("\(error)".contains(expired) == false)
        #expect(try stored(fixture) == (0..<5).map { "event \($0)" })
        await braze.close()
    }

    @Test(arguments: [("wrong key", 27), ("other user", 21), ("missing", 26)])
    func otherInvalidSignaturesHaveTheirErrorCodes(fault: String, code: Int) async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let good = try fixture.token(for: "userId")
        let delegate = SampleDelegate { _ in good }
        VendorSamples.register(delegate, configuration: fixture.brazeConfiguration)
        let braze = try #require(AppDelegate.braze)
        let signature: String? =
            switch fault {
            case "wrong key": try fixture.token(for: "userId", key: SharedKeys.stranger())
            case "other user": try fixture.token(for: "somebody else")
            default: nil
            }
        braze.changeUser(userId: "userId", sdkAuthSignature: signature)
        braze.logCustomEvent(name: "event")
        _ = await braze.flush()
        await delegate.waitForError()
        #expect(await braze.flush())
        #expect(delegate.errors.map(\.code) == [code])
        #expect(try stored(fixture) == ["event"])
        await braze.close()
    }

    @Test func withOptionalEnforcementAnExpiredTokenIsReportedAndTheEventStored() async throws {
        let fixture = try GatewayFixture(enforcement: .optional)
        let delegate = SampleDelegate { _ in "still.no.good" }
        VendorSamples.register(delegate, configuration: fixture.brazeConfiguration)
        let braze = try #require(AppDelegate.braze)
        braze.changeUser(userId: "userId", sdkAuthSignature: try fixture.token(for: "userId", lifetime: -600))
        braze.logCustomEvent(name: "event")
        #expect(await braze.flush())
        await delegate.waitForError()
        #expect(delegate.errors[0].code == 22)
        #expect(delegate.errors[0].optional)
        #expect(try stored(fixture) == ["event"])
        await braze.close()
    }
}

extension GatewayFixture {
    /// The configuration of a device with SDK authentication enabled.
    var brazeConfiguration: Braze.Configuration {
        let configuration = Braze.Configuration(
            apiKey: writeKey, endpoint: "http://127.0.0.1:\(gateway.port)")
        configuration.api.sdkAuthentication = true
        configuration.dataDirectory = URL(fileURLWithPath: dataDirectory).appendingPathComponent("device")
        return configuration
    }
}
