import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

/// Adding, promoting and deleting public keys on a running gateway.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct KeyRingTests {
    private let fixture: GatewayFixture
    private let connection: any TestClient

    init() throws {
        fixture = try GatewayFixture(.standard)
        connection = try fixture.client()
    }

    private func status(_ key: SigningKey) throws -> Int? {
        try fixture.gateway.refreshApps()
        let token = try fixture.token(for: "user-1", key: key)
        return connection.post(
            batch(trackEvent(UUID().uuidString)),
            headers: ["X-Write-Key": fixture.writeKey, "Authorization": "Bearer \(token)"])?.status
    }

    private func slots() throws -> [String] { try fixture.apps.app(id: "shop").keys.map { $0.id } }

    @Test func rotationNeedsNoRestart() throws {
        let next = try SharedKeys.stranger()
        #expect(try status(next) == 401)
        let added = try fixture.apps.addKey(next.publicKey.pem, to: "shop")
        #expect(added.slot == .secondary)
        #expect(try status(next) == 200)
        #expect(try status(fixture.signingKey) == 200)
        let old = try #require(try slots().first)
        let rejection = #expect(throws: GatewayError.self) {
            try fixture.apps.deleteKey(keyID: old, of: "shop")
        }
        #expect(rejection?.code == .conflict)
        try fixture.apps.makePrimary(keyID: added.id, of: "shop")
        #expect(try slots() == [added.id, old])
        try fixture.apps.deleteKey(keyID: old, of: "shop")
        // Deleting a key also removes its tokens from the cache.
        #expect(try status(fixture.signingKey) == 401)
        #expect(try status(next) == 200)
        try fixture.apps.deleteKey(keyID: added.id, of: "shop")
        #expect(try status(next) == 401)
    }

    @Test func anAppHasThreeKeySlotsAndNoDuplicateKeys() throws {
        #expect(
            #expect(throws: GatewayError.self) {
                try fixture.apps.addKey(fixture.signingKey.publicKey.jwk, to: "shop")
            }?.code == .conflict)
        let more = try (0..<3).map { _ in try SigningKey.generate(.es256).publicKey }
        let twice = JWKSet(keys: [more[0], more[0], more[1]])
        let added = try fixture.apps.importKeys(fromJWKSet: twice.json, to: "shop")
        #expect(added.map(\.slot) == [.secondary, .tertiary])
        #expect(
            #expect(throws: GatewayError.self) { try fixture.apps.addKey(more[2].pem, to: "shop") }?.code
                == .conflict)
        // Another app may have the same key.
        _ = try fixture.apps.createApp(id: "other")
        _ = try fixture.apps.addKey(more[0].pem, to: "other")
        try fixture.apps.makePrimary(keyID: more[1].thumbprint, of: "shop")
        #expect(
            try slots() == [more[1].thumbprint, fixture.signingKey.publicKey.thumbprint, more[0].thumbprint])
    }

    @Test func aPrivateKeyIsRejectedAsASecret() throws {
        let error = #expect(throws: GatewayError.self) {
            try fixture.apps.addKey(fixture.signingKey.privatePEM, to: "shop")
        }
        #expect(error?.code == .invalid)
        #expect(error?.reason.contains("private") == true)
        #expect(error?.reason.contains("BEGIN") == false)
    }

    @Test func eachKeyCountsItsVerifications() throws {
        let second = try SharedKeys.stranger()
        _ = try fixture.apps.addKey(second.publicKey.pem, to: "shop")
        for _ in 0..<3 { _ = try status(second) }
        _ = try status(fixture.signingKey)
        // Counts are written once a second and on shutdown.
        fixture.gateway.stop()
        let uses = try fixture.place.open().log.keyUses(of: "shop")
        #expect(uses.first { $0.keyID == second.publicKey.thumbprint }?.verified == 3)
        #expect(uses.first { $0.keyID == fixture.signingKey.publicKey.thumbprint }?.verified == 1)
        #expect(uses.allSatisfy { $0.lastMilliseconds > 1_700_000_000_000 })
    }
}
