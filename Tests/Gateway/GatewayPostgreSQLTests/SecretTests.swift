import CountersignCore
import CountersignJOSE
import CountersignSQLite
import Foundation
import Testing

@testable import CountersignGatewayTesting
@testable import GatewayModel
@testable import GatewayPostgreSQL
@testable import GatewayStorage

extension PostgreSQLTests {
    /// A database dump does not reveal these secrets without the token key.
    @Suite(.timeLimit(.minutes(2)))
    struct SecretTests {
        private static let key = "a secret of thirty-two bytes or more"
        private static let webhookKey = Array("webhook's own key: 24 to 64".utf8)
        private static let alertKey = Array("alerts have another of 24 B".utf8)
        private static let pushKey = Array("pushes have the third key..".utf8)
        private static let factor = OneTimePassword(secret: Array("second factor's key.".utf8))

        private static func text(_ key: [UInt8]) -> String { "whsec_" + Data(key).base64EncodedString() }

        /// Stores one secret of each kind.
        private func fill(_ apps: AppDirectory) throws {
            _ = try apps.createApp(id: "shop")
            _ = try apps.projects.addCustomerTokenKey(id: "key-1", secret: Self.key, to: "shop")
            try apps.admins.createUser(name: "ada", role: .owner, password: PasswordHash(text: "none"))
            try apps.admins.beginSecondFactor(Self.factor, of: "ada", at: 0)
            _ = try apps.webhooks.create(
                of: "shop", ["url": .string("https://example.com/hook")], secret: Self.text(Self.webhookKey),
                after: 0, at: 1)
            _ = try apps.setAlertWebhook(
                url: "https://example.com/alerts", secret: Self.text(Self.alertKey), for: "shop")
            _ = try apps.setPushWebhook(
                url: "https://example.com/push", secret: Self.text(Self.pushKey), for: "shop")
        }

        /// Checks that each secret is read back unchanged.
        private func check(_ apps: AppDirectory, pseudonym: [UInt8]) throws {
            #expect(
                try apps.projects.project(of: "shop").customerTokenKeys.map(\.secret) == [
                    Array(Self.key.utf8)
                ])
            #expect(try apps.webhooks.all().map(\.secret) == [Self.webhookKey])
            #expect(try apps.settingIfSet(PushWebhook.self, of: "shop")?.secret == Self.alertKey)
            #expect(try apps.setting(ProjectSettings.self, of: "shop").webhook?.secret == Self.pushKey)
            #expect(try apps.pseudonymKey() == pseudonym)
            let codes = try apps.admins.confirmSecondFactor(
                Self.factor.code(2), of: "ada", at: 60_000, keeping: "session")
            #expect(codes != nil)
            #expect(try apps.admins.useSecondFactor(Self.factor.code(3), of: "ada", at: 90_000))
        }

        /// Returns every row of the schema as text, with bytes in hexadecimal.
        private func dump(_ connection: PostgreSQLConnection) throws -> String {
            let tables = try connection.all(
                """
                SELECT relname FROM pg_class
                WHERE relnamespace = 'countersign'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
                """
            ) { $0.text(0) }
            #expect(tables.count > 40)
            return try tables.map { table in
                try connection.all("SELECT t::text FROM \"\(table)\" AS t") { $0.text(0) }
                    .joined(separator: "\n")
            }.joined(separator: "\n")
        }

        /// Returns the secrets that occur in a dump, as text, hexadecimal or base64.
        private func shown(_ dump: String, pseudonym: [UInt8]) -> [String] {
            let secrets = [
                "customers' tokens": Array(Self.key.utf8), "webhook": Self.webhookKey,
                "alerts": Self.alertKey,
                "pushes": Self.pushKey, "second factor": Self.factor.secret, "pseudonyms": pseudonym,
            ]
            return secrets.filter { _, secret in
                let forms = [
                    String(decoding: secret, as: UTF8.self), secret.hexadecimal,
                    Array(secret.hexadecimal.utf8).hexadecimal, Data(secret).base64EncodedString(),
                ]
                return forms.contains { dump.contains($0) }
            }.map(\.key).sorted()
        }

        @Test func aDumpShowsNoSecret() throws {
            try TestDatabase.use { database in
                let folder = try TestFolder()
                let apps = try folder.storage(database).openControl(as: .account)
                try fill(apps)
                let pseudonym = try apps.pseudonymKey()
                let connection = try database.connect()
                #expect(shown(try dump(connection), pseudonym: pseudonym) == [])
                try check(try folder.storage(database).openControl(as: .account), pseudonym: pseudonym)
            }
        }

        @Test func sealedValuesOpenOnlyInTheirRowAndWithTheirKey() throws {
            try TestDatabase.use { database in
                let (folder, other) = (try TestFolder(), try TestFolder())
                let apps = try folder.storage(database).openControl(as: .account)
                try fill(apps)
                let stranger = try other.storage(database).openControl(as: .account)
                let error = #expect(throws: GatewayError.self) { try stranger.projects.all() }
                #expect(error?.code == .conflict)
                #expect(error?.reason.contains(other.tokenKeyFile) == true)

                _ = try apps.projects.addCustomerTokenKey(id: "key-2", secret: Self.key + "!", to: "shop")
                let connection = try database.connect()
                try connection.execute(
                    """
                    UPDATE customer_token_key SET secret = (SELECT secret FROM customer_token_key WHERE id = 'key-2')
                    WHERE id = 'key-1'
                    """)
                let moved = #expect(throws: GatewayError.self) { try apps.projects.all() }
                #expect(moved?.code == .conflict)
                #expect(moved?.reason.contains("customer_token_key shop key-1") == true)
            }
        }

        @Test func theDocumentedSQLDeletesAllSecretsSoThatAnotherTokenKeyIsAccepted() throws {
            try TestDatabase.use { database in
                let (folder, other) = (try TestFolder(), try TestFolder())
                let apps = try folder.storage(database).openControl(as: .account)
                try fill(apps)
                let secrets = try folder.storage(database).openSecrets()
                _ = try (apps.pseudonymKey(), secrets.refreshKey(), secrets.signer(at: 1))
                let path = "../../../../docs/operating/several-gateways.md"
                let page = URL(fileURLWithPath: #filePath).appendingPathComponent(path).standardizedFileURL
                let block = try String(contentsOf: page, encoding: .utf8).split(separator: "```sql\n").last
                let connection = try database.connect()
                try connection.execute(String(try #require(block?.split(separator: "```\n").first)))
                for table in SecretColumn.all.map(\.table) + ["refresh_key", "signing_key"] {
                    #expect(try connection.first("SELECT 1 FROM \(table)") { _ in true } == nil, "\(table)")
                }
                _ = try other.storage(database).openSecrets().signer(at: 1)
            }
        }

        @Test func copyingSealsSecretsAndCopyingBackOpensThem() throws {
            try TestDatabase.use { database in
                let (folder, back, keys) = (try TestFolder(), try TestFolder(), try TestFolder())
                try FileManager.default.removeItem(atPath: folder.path)
                let apps = try SQLiteStorage(dataDirectory: folder.path).openControl(as: .account)
                try fill(apps)
                let pseudonym = try apps.pseudonymKey()
                let source = try FolderCopy(from: folder.path)
                let target = try DatabaseCopy(
                    database.settings, tokenKeyFile: keys.tokenKeyFile, isSource: false)
                let copy = StorageCopy(from: source, to: target, tables: source.tables)
                try copy.copy()
                #expect(try copy.compare().allSatisfy(\.isSame))
                let connection = try database.connect()
                #expect(shown(try dump(connection), pseudonym: pseudonym) == [])

                try FileManager.default.removeItem(atPath: back.path)
                let returned = try DatabaseCopy(
                    database.settings, tokenKeyFile: keys.tokenKeyFile, isSource: true)
                let made = try FolderCopy(to: back.path, copyOf: try returned.log())
                let way = StorageCopy(from: returned, to: made, tables: made.tables)
                try way.copy()
                #expect(try way.compare().allSatisfy(\.isSame))
                let restored = try SQLiteStorage(dataDirectory: back.path).openControl(as: .account)
                try check(restored, pseudonym: pseudonym)
                try check(try keys.storage(database).openControl(as: .account), pseudonym: pseudonym)
            }
        }
    }
}
