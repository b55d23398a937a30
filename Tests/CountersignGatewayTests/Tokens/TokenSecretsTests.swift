import CountersignJOSE
import CountersignTesting
import Foundation
import Testing

@testable import CountersignGateway
@testable import GatewayStorage

struct TokenSecretsTests {
    private let folder = TemporaryFolder()
    private let day: Int64 = 86_400_000

    private func secrets() throws -> TokenSecrets {
        try TokenSecrets(dataDirectory: DataDirectory(path: folder.path))
    }

    @Test func keysSurviveARestartAndAreReadableByTheirOwnerOnly() throws {
        let before = try secrets()
        let signer = try before.signer(at: 0)
        #expect(try secrets().signer(at: 1).id == signer.id)
        #expect(try secrets().refreshKey() == before.refreshKey())
        #expect(try before.refreshKey().count == 32)
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path + "/token-keys.sqlite")
        #expect((mode[.posixPermissions] as? NSNumber)?.intValue == 0o600)
    }

    @Test func aKeyIsPublishedBeforeItSignsAndAfterItHasSigned() throws {
        let secrets = try secrets()
        let old = try secrets.signer(at: 0)
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

    @Test func aKeyInWrongHandsIsEndedAtOnce() throws {
        let secrets = try secrets()
        let other = try self.secrets()
        let old = try secrets.signer(at: 0)
        let new = try other.rotate(signsFrom: 5, endsOthers: true)
        #expect(try secrets.published(at: 5).map(\.id) == [new.id])
        #expect(try secrets.signer(at: 5).id == new.id)
        #expect(old.id != new.id)
    }
}
