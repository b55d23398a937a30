import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import Testing

@testable import BrazeCompat
@testable import Countersign
@testable import CountersignDelivery
@testable import CountersignTransport

/// Sessions, purchases and user attributes with a real gateway over a real socket.
@Suite(.serialized, .timeLimit(.minutes(5)))
@MainActor
struct SessionTests {
    /// The platform's transport, with a count of rejections.
    private struct WatchedTransport: HTTPTransport {
        private let base = makeDefaultTransport()
        let rejections: Handshake
        let count = Lock(0)

        func send(
            _ request: TransportRequest
        ) async throws(HTTPTransportError) -> TransportResponse {
            let response = try await base.send(request)
            if response.status == 401 {
                count.withLock { $0 += 1 }
                rejections.signal()
            }
            return response
        }
    }

    private func stored(
        _ fixture: GatewayFixture
    ) throws -> [(user: String?, name: String?, type: String, body: String)] {
        try fixture.rows("user_id", "name", "type", "body").map {
            ($0[0], $0[1], $0[2] ?? "", $0[3] ?? "")
        }
    }

    /// Braze: "After 50 consecutive failed attempts, retries will be paused until the next session start."
    @Test func fiftyRejectionsPauseSendingUntilTheNextSession() async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let clock = ManualClock(now: Date())
        let transport = WatchedTransport(rejections: Handshake())
        let configuration = fixture.brazeConfiguration
        configuration.transport = transport
        configuration.clock = clock
        configuration.adjust = {
            $0.flushPolicy = FlushPolicy(eventCount: 1, interval: nil, onBackground: true)
        }
        let braze = Braze(configuration: configuration)
        let client = try #require(braze.client)
        braze.changeUser(
            userId: "userId",
            sdkAuthSignature: try fixture.token(for: "userId", key: SharedKeys.stranger()))
        braze.logCustomEvent(name: "event")
        for rejection in 1...50 {
            await transport.rejections.wait(count: rejection)
            if rejection < 50 { clock.advance(to: await clock.waitForSleeper()) }
        }
        await client.pipeline.engine.idle()
        let parked = try #require(await client.snapshot().parked.first)
        #expect(parked.failures == 50)
        #expect(parked.isPaused)
        #expect(parked.nextAttemptIn == nil)
        // 51 if the session's first event is rejected before the session's start resets the count of failures.
        let sent = transport.count.withLock { $0 }

        // Deliveries stay paused after the cause is removed, a day has passed and an event is recorded.
        try fixture.apps.setEnforcement(.disabled, for: fixture.appID)
        try fixture.gateway.refreshApps()
        clock.advance(by: 86_400)
        _ = try await client.record("later")
        client.enterBackground()
        await client.pipeline.engine.idle()
        #expect(transport.count.withLock { $0 } == sent)
        #expect(try stored(fixture).allSatisfy { $0.user == nil })

        braze.startSession()
        await client.pipeline.recorder.drain()
        await client.pipeline.engine.idle()
        let names = try stored(fixture).filter { $0.user == "userId" }.map(\.name)
        #expect(names == ["ss", "event", "later", "se", "ss"])
        #expect(transport.count.withLock { $0 } == sent)
        await braze.close()
    }

    @Test func sessionsBelongToTheirUserAndHaveTheirDuration() async throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let clock = ManualClock(now: Date())
        let configuration = fixture.brazeConfiguration
        configuration.clock = clock
        configuration.api.requestPolicy = .manual
        let braze = Braze(configuration: configuration)
        clock.advance(by: 3)
        braze.changeUser(userId: "ada")
        clock.advance(by: 7.5)
        braze.endSession()
        braze.endSession()
        clock.advance(by: 60)
        braze.startSession()
        braze.changeUser(userId: "ada")
        #expect(await braze.flush())
        let sessions = try stored(fixture).map { "\($0.name ?? "") \($0.user ?? "nobody")" }
        #expect(sessions.sorted() == ["se ada", "se nobody", "ss ada", "ss ada", "ss nobody"])
        let durations = try stored(fixture).filter { $0.name == "se" }.map(\.body)
        #expect(
            durations.contains { $0.contains(#""d":3"#) } && durations.contains { $0.contains(#""d":7.5"#) })
        await braze.close()
    }

    @Test func purchasesAndAttributesAreStored() async throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let configuration = fixture.brazeConfiguration
        configuration.api.requestPolicy = .manual
        let braze = Braze(configuration: configuration)
        braze.changeUser(userId: "ada", sdkAuthSignature: try fixture.token(for: "ada"))
        braze.logPurchase(
            productId: "tea", currency: "eur", price: 4.5, quantity: 2, properties: ["size": "large"])
        braze.user.set(email: "ada@example.com")
        braze.user.set(firstName: nil)
        braze.user.set(gender: .preferNotToSay)
        braze.user.setCustomAttribute(key: "visits", value: 3)
        braze.user.setCustomAttribute(key: "plan", dictionary: ["name": "pro", "until": nil])
        braze.user.unsetCustomAttribute(key: "old")
        braze.user.setCustomAttribute(key: "", value: "nothing")
        #expect(braze.user.id == "ada")
        #expect(await braze.flush())
        let rows = try stored(fixture)
        let purchase = try #require(rows.first { $0.name == "p" })
        for member in [#""pid":"tea""#, #""c":"EUR""#, #""p":4.5"#, #""q":2"#, #""pr":{"size":"large"}"#] {
            #expect(purchase.body.contains(member), "\(member)")
        }
        let attributes = rows.filter { $0.type == "identify" }
        #expect(attributes.allSatisfy { $0.user == "ada" })
        let bodies = attributes.map(\.body).joined(separator: "\n")
        for member in [
            #""email":"ada@example.com""#, #""first_name":null"#, #""gender":"p""#,
            #""custom":{"visits":3}"#, #""custom":{"plan":{"name":"pro","until":null}}"#,
            #""custom":{"old":null}"#,
        ] {
            #expect(bodies.contains(member), "\(member)")
        }
        #expect(attributes.count == 6)
        await braze.close()
    }

    @Test func whileDisabledNoEventIsRecordedAndWipingDeletesAll() async throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let configuration = fixture.brazeConfiguration
        configuration.api.requestPolicy = .manual
        let braze = Braze(configuration: configuration)
        #expect(braze.enabled)
        braze.enabled = false
        braze.logCustomEvent(name: "unwanted")
        braze.enabled = true
        braze.logCustomEvent(name: "wanted")
        #expect(await braze.flush())
        #expect(try stored(fixture).map(\.name) == ["ss", "wanted"])
        braze.changeUser(userId: "ada")
        braze.logCustomEvent(name: "wiped")
        try await braze.client?.optOut()
        #expect(!braze.enabled)
        #expect(braze.user.id == nil)
        braze.enabled = true
        #expect(await braze.flush())
        #expect(try stored(fixture).map(\.name) == ["ss", "wanted"])
        await braze.close()
    }
}
