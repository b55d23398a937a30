import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayStorage

@Suite(.ownThreads) struct TokenSecretsTests {
    private let place: TestStorage
    private let day: Int64 = 86_400_000

    init() throws { place = try TestStorage() }

    private func secrets() throws -> TokenSecrets {
        try place.open().openSecrets()
    }

    /// Adds an existing key that signs from time 0, because generating a key is slow.
    private func addKey(_ key: () throws -> SigningKey, to secrets: TokenSecrets) throws -> IssuingKey {
        try secrets.rotate { IssuingKey(try key(), signsFromMilliseconds: 0) }
    }

    @Test func keysSurviveARestartAndAreReadableByTheirOwnerOnly() throws {
        let before = try secrets()
        let signer = try before.signer(at: 0)
        let after = try StorageLocation(place.configuration).open().openSecrets()
        #expect(try after.signer(at: 1).id == signer.id)
        #expect(try after.refreshKey() == before.refreshKey())
        #expect(try before.refreshKey().count == 32)
        let file = TestEngine.standard == .sqlite ? "/token-keys.sqlite" : "/token-key"
        let mode = try FileManager.default.attributesOfItem(atPath: place.folder + file)
        #expect((mode[.posixPermissions] as? NSNumber)?.intValue == 0o600)
    }

    @Test func aKeyIsPublishedBeforeItSignsAndAfterItHasSigned() throws {
        let secrets = try secrets()
        let old = try addKey(SharedKeys.app, to: secrets)
        #expect(try secrets.maintain(at: 90 * day - 1)?.map(\.id) == [old.id])
        let both = try #require(try secrets.maintain(at: 90 * day))
        #expect(both.count == 2)
        let new = try #require(both.first { $0.id != old.id })
        let begins = 90 * day + 3_600_000
        #expect(try secrets.signer(at: begins - 1).id == old.id)
        #expect(try secrets.signer(at: begins).id == new.id)
        // No token lives longer than a day.
        #expect(try secrets.maintain(at: begins + day - 1)?.map(\.id) == [new.id, old.id])
        #expect(try secrets.maintain(at: begins + day)?.map(\.id) == [new.id])
        #expect(try self.secrets().published(at: begins + day).map(\.id) == [new.id])
    }

    @Test func aSigningKeyMadeWithTheClockAheadDoesNotBlockRotation() throws {
        let secrets = try secrets()
        _ = try addKey(SharedKeys.app, to: secrets)
        let ahead = try #require(try secrets.maintain(at: 1_000 * day)).map(\.id)
        #expect(ahead.count == 2)
        let right = try #require(try secrets.maintain(at: 90 * day))
        let new = try #require(right.first { !ahead.contains($0.id) })
        #expect(try secrets.signer(at: 90 * day + 3_600_000).id == new.id)
    }

    /// Two gateways on one database find at the same time that a new key is needed.
    @Test(.onSQLite("PostgreSQL's own tests have several gateways")) func twoGatewaysMakeOneNewKey() throws {
        let first = try secrets()
        let old = try addKey(SharedKeys.app, to: first)
        let file = try SQLiteWriter(
            path: place.folder + "/token-keys.sqlite", pragmas: "PRAGMA foreign_keys = ON", ["SELECT 1"],
            at: Date())
        let time = 90 * day
        let second = TokenSecrets(
            HookedDatabase(file, willChange: { _ = try first.maintain(at: time) }), seal: .none)
        let keys = try #require(try second.maintain(at: time)).map(\.id)
        #expect(keys.count == 2 && keys.contains(old.id))
        #expect(try Set(keys) == Set(first.published(at: time).map(\.id)))
    }

    @Test(.onSQLite("a file with another seal; in PostgreSQL all keys are sealed"))
    func signingKeysAreSealedInASharedDatabase() throws {
        let file = try SQLiteWriter(
            path: DataDirectory(path: place.folder).file("shared.sqlite"), pragmas: SQLiteWriter.shortLog,
            [
                """
                CREATE TABLE refresh_key (id INTEGER PRIMARY KEY, key BLOB NOT NULL) STRICT;
                CREATE TABLE signing_key (
                    id TEXT PRIMARY KEY, pem BLOB NOT NULL, signs_from_ms INTEGER NOT NULL) STRICT;
                """
            ], at: Date())
        let turned: @Sendable ([UInt8]) -> [UInt8] = { $0.map { ~$0 } }
        let seal = TokenSecrets.Seal(
            seal: { secret in
                if case .text(let text) = secret { return .blob(turned(Array(text.utf8))) }
                guard case .blob(let bytes) = secret else { return secret }
                return .blob(turned(bytes))
            }, open: turned)
        let before = TokenSecrets(file, seal: seal)
        let (key, signer) = (try before.refreshKey(), try addKey(SharedKeys.app, to: before))
        let after = TokenSecrets(file, seal: seal)
        #expect(try after.refreshKey() == key)
        #expect(try after.signer(at: 1).id == signer.id)
        let kept = try file.read { connection in
            try connection.all("SELECT key FROM refresh_key UNION ALL SELECT pem FROM signing_key") {
                $0.blob(0)
            }
        }
        #expect(kept.contains(turned(key)))
        #expect(!kept.contains { String(decoding: $0, as: UTF8.self).contains("PRIVATE KEY") })
    }

    @Test func endingACompromisedSigningKeyTakesEffectAtOnce() throws {
        let secrets = try secrets()
        let other = try self.secrets()
        let old = try addKey(SharedKeys.app, to: secrets)
        let new = try other.rotate(signsFrom: 5, endsOthers: true)
        #expect(try secrets.published(at: 5).map(\.id) == [new.id])
        #expect(try secrets.signer(at: 5).id == new.id)
        #expect(old.id != new.id)
    }
}
