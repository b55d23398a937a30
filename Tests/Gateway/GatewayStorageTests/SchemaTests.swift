import CountersignJOSE
import CountersignSQLite
import CountersignTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayModel
@testable import GatewayStorage

@Suite(.onSQLite("the schemas of its files"), .ownThreads, .timeLimit(.minutes(5)))
struct SchemaTests {
    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url }
    private var path: String { folder.appendingPathComponent("events.sqlite").path }
    private var backups: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/backups")) ?? []).sorted()
    }

    init() throws {
        try FileManager.default.createDirectory(at: temporary.url, withIntermediateDirectories: true)
    }

    private func versions() throws -> [Int] {
        try SQLiteConnection(path: path).all("SELECT version FROM schema_version ORDER BY version") {
            $0.int(0)
        }
    }

    @Test func aFileWithDataIsCopiedAsideBeforeItIsChanged() throws {
        let first = ["CREATE TABLE a (x INTEGER)"]
        let connection = try SQLiteConnection(path: path)
        try Schema.migrate(connection, first)
        #expect(backups.isEmpty)
        #expect(try versions() == [1])
        try connection.execute("INSERT INTO a VALUES (42)")
        try Schema.migrate(connection, first + ["DROP TABLE a", "CREATE TABLE b (y INTEGER)"])
        #expect(try versions() == [1, 2, 3])
        let name = try #require(backups.first)
        #expect(backups.count == 1)
        #expect(name.hasPrefix("events-schema1-"))
        let copy = try SQLiteConnection(path: folder.path + "/backups/" + name)
        #expect(try copy.first("SELECT x FROM a") { $0.int(0) } == 42)
        #expect(try copy.first("PRAGMA user_version") { $0.int(0) } == 1)
        // A run without pending migrations makes no backup.
        try Schema.migrate(connection, first + ["DROP TABLE a", "CREATE TABLE b (y INTEGER)"])
        #expect(backups.count == 1)
    }

    @Test func withoutABackupCopyNoMigrationRuns() throws {
        let connection = try SQLiteConnection(path: path)
        try Schema.migrate(connection, ["CREATE TABLE a (x INTEGER)"])
        // A file blocks the path of the backup folder.
        try Data().write(to: folder.appendingPathComponent("backups"))
        #expect(throws: (any Error).self) {
            try Schema.migrate(connection, ["CREATE TABLE a (x INTEGER)", "DROP TABLE a"])
        }
        #expect(try connection.first("SELECT count(*) FROM a") { $0.int(0) } == 0)
        #expect(try versions() == [1])
    }

    @Test func aNewerFileIsRejected() throws {
        let connection = try SQLiteConnection(path: path)
        try connection.execute("PRAGMA user_version = 9")
        let error = #expect(throws: GatewayError.self) {
            try Schema.migrate(connection, ["CREATE TABLE a (x INTEGER)"])
        }
        #expect(error?.code == .conflict)
    }

    /// An earlier version had one gap for all partitions.
    @Test func aConsumersGapIsMigratedToItsPartitions() throws {
        let connection = try SQLiteConnection(path: path)
        try Schema.migrate(connection, EventLogSchema.migrations.dropLast())
        try connection.execute(
            """
            INSERT INTO event_consumer (app_id, kind, name, created_ms, generation, missed_ms)
                VALUES ('shop', 'pull', 'one', 1, 1, 1), ('shop', 'pull', 'two', 1, 1, NULL);
            INSERT INTO event_consumer_position VALUES ('shop', 'pull', 'one', 0, 5),
                ('shop', 'pull', 'one', 1, 4), ('shop', 'pull', 'two', 0, 7);
            INSERT INTO event_floor VALUES ('shop', 5);
            """)
        try EventLogSchema.migrate(connection)
        let gaps = try connection.all(
            "SELECT is_after_gap FROM event_consumer_position ORDER BY name, partition"
        ) { $0.int(0) }
        #expect(gaps == [1, 0, 0])
    }

    /// Creates `control.sqlite` with the schema of an earlier version.
    private func control(in data: String, schema: Int) throws -> SQLiteConnection {
        try FileManager.default.createDirectory(
            atPath: data, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let connection = try SQLiteConnection(path: data + "/control.sqlite")
        try connection.execute("PRAGMA foreign_keys = ON")
        try Schema.migrate(connection, Array(ControlDatabase.migrations.prefix(schema)))
        return connection
    }

    /// An entry deleted from the end before the upgrade is still detected afterwards.
    @Test(arguments: [nil, 3 as Int64?])
    func theAuditLogContinuesAfterItsLastEntry(taken: Int64?) throws {
        let data = folder.path + "/data"
        let old = try control(in: data, schema: 19)
        var previous = AuditEntry.root
        for seq in 1...3 {
            var entry = AuditEntry(
                seq: Int64(seq), atMilliseconds: 1, actor: "ada", role: "owner", action: "app.rename",
                target: "shop", previousHash: previous, hash: [])
            entry.hash = entry.computedHash
            try old.run(
                """
                INSERT INTO audit (seq, at_ms, actor, role, action, target, previous_hash, hash)
                VALUES (?, 1, 'ada', 'owner', 'app.rename', 'shop', ?, ?)
                """, .integer(entry.seq), .blob(previous), .blob(entry.hash))
            previous = entry.hash
        }
        if let taken { try old.run("DELETE FROM audit WHERE seq = ?", .integer(taken)) }
        let log = try AppDirectory(dataDirectory: data).auditLog
        #expect(try log.verify().brokenAt == taken)
        try log.note("app.rename", "shop")
        #expect(try log.entries(limit: 1).first?.seq == 4)
        #expect(try log.verify().brokenAt == taken)
    }

    @Test func settingsOfEarlierTablesAreMigrated() throws {
        let data = folder.path + "/data"
        let secret = String(repeating: "0a", count: 32)
        try control(in: data, schema: 13).execute(
            """
            INSERT INTO app VALUES ('shop', 'The shop', 'required', 'RS256 ES256', 7.5, 3600, 'braze', 'shop.example',
                1, 0, 1, 1000), ('bare', 'Bare', 'optional', 'RS256', 30, NULL, NULL, NULL, 0, 0, 0, 2000);
            INSERT INTO app_rules VALUES ('shop', 'https://a.example https://b.example', 30, 5000),
                ('bare', '', NULL, NULL);
            INSERT INTO token_rules VALUES ('shop', 1, 600, 1200, 5, 2400);
            INSERT INTO key_source VALUES ('shop', 'https://keys.example/jwks', 1);
            INSERT INTO alert_webhook VALUES ('shop', 'https://alerts.example/in', x'\(secret)', 0);
            INSERT INTO push_webhook VALUES ('shop', 'http://push.example/in', x'\(secret)', 1);
            INSERT INTO project VALUES ('shop', 'token-1', 'required', 4), ('bare', NULL, 'off', 1);
            INSERT INTO enforcement_plan (app_id, ramp_percent, scheduled_state, scheduled_ms, scheduled_ramp,
                return_percent, return_minutes, return_requests, returned_ms, returned_percent, since_ms)
                VALUES ('shop', 40, 'optional', 9000, 100, 5, 6, 7, 8000, 2.5, 3000);
            INSERT INTO alert VALUES ('msg_1', 'shop', x'7b7d', 0, 10);
            """)
        let apps = try AppDirectory(dataDirectory: data)
        let shop = try apps.app(id: "shop")
        #expect(shop.name == "The shop" && shop.enforcement == .required && shop.createdMilliseconds == 1000)
        let policy = ClaimsPolicy(
            algorithms: [.rs256, .es256], leeway: 7.5, maximumLifetime: 3600, audiences: ["braze"],
            issuers: ["shop.example"], requiresAudience: true, requiresType: true)
        #expect(shop.policy.json == policy.json)
        var rules = AppRules()
        rules.origins = ["https://a.example", "https://b.example"]
        (rules.retentionDays, rules.retentionBytes) = (30, 5000)
        #expect(try apps.rules(of: "shop") == rules)
        var tokens = TokenRules()
        tokens.allowsRegistration = true
        (tokens.accessSeconds, tokens.refreshSeconds) = (600, 1200)
        (tokens.reuseSeconds, tokens.absoluteSeconds) = (5, 2400)
        #expect(try apps.tokenRules(of: "shop") == tokens)
        #expect(
            try apps.settingIfSet(KeySources.self, of: "shop")?.all
                == [KeySource(url: "https://keys.example/jwks", allowsPrivateAddresses: true)])
        let key = [UInt8](repeating: 10, count: 32)
        let alert = try #require(try apps.alerts.takeDue(at: 20).first)
        #expect(
            alert.webhook
                == PushWebhook(url: "https://alerts.example/in", secret: key, allowsPrivateAddresses: false))
        var project = ProjectSettings(token: "token-1", customerTokens: .required)
        project.webhook = PushWebhook(
            url: "http://push.example/in", secret: key, allowsPrivateAddresses: true)
        project.inboxEpoch = 4
        #expect(try apps.projects.project(of: "shop").settings == project)
        #expect(try apps.projects.project(of: "shop").inbox.epoch == 4)
        var plan = EnforcementPlan()
        (plan.state, plan.rampPercent, plan.sinceMilliseconds) = (.required, 40, 3000)
        plan.scheduled = .init(state: .optional, atMilliseconds: 9000)
        plan.autoReturn = .init(rejectedPercent: 5, windowMinutes: 6, minimumRequests: 7)
        plan.returned = .init(atMilliseconds: 8000, rejectedPercent: 2.5)
        #expect(try apps.enforcementPlan(of: "shop") == plan)
        // An app with default settings.
        let bare = try apps.app(id: "bare")
        #expect(bare.enforcement == .optional && bare.policy.json == ClaimsPolicy().json)
        #expect(try apps.rules(of: "bare") == AppRules() && apps.tokenRules(of: "bare") == TokenRules())
        #expect(try apps.projects.project(of: "bare").settings == .standard(for: "bare"))
        #expect(try apps.settingIfSet(KeySources.self, of: "bare") == nil)
        #expect(try apps.settingIfSet(PushWebhook.self, of: "bare") == nil)
    }

    @Test func unchangedSettingsAreNotAudited() throws {
        let apps = try AppDirectory(dataDirectory: folder.path + "/data")
        _ = try apps.createApp(id: "shop")
        var rules = TokenRules()
        rules.accessSeconds = 60
        for _ in 0..<2 { try apps.setTokenRules(rules, for: "shop") }
        try apps.setRules(AppRules(), of: "shop")
        #expect(try apps.auditLog.entries(limit: 9).map(\.action) == ["tokens.rules", "app.create"])
        rules.accessSeconds = 0
        #expect(throws: GatewayError.self) { try apps.setTokenRules(rules, for: "shop") }
        #expect(throws: GatewayError.self) { try apps.setTokenRules(TokenRules(), for: "none") }
    }

    // Windows under a minute were safe while a replaced token stayed valid until its successor was used.
    @Test func aShortReuseWindowOfAnEarlierVersionBecomesAMinute() throws {
        let data = folder.path + "/data"
        let old = try control(in: data, schema: 12)
        for (id, seconds) in [("a", 0), ("b", 30), ("c", 60)] {
            try old.execute(
                """
                INSERT INTO app VALUES ('\(id)', 'A', 'disabled', 'RS256', 30, NULL, NULL, NULL, 0, 0, 0, 1);
                INSERT INTO token_rules VALUES ('\(id)', 0, 600, 3600, \(seconds), 7200);
                """)
        }
        let upgraded = try AppDirectory(dataDirectory: data)
        for id in ["a", "b", "c"] {
            #expect(try upgraded.tokenRules(of: id).reuseSeconds == 60)
            #expect(try upgraded.tokenRules(of: id).accessSeconds == 600)
        }
        // A window set after the upgrade is not changed.
        var rules = TokenRules()
        rules.reuseSeconds = 5
        try upgraded.setTokenRules(rules, for: "a")
        #expect(try AppDirectory(dataDirectory: data).tokenRules(of: "a").reuseSeconds == 5)
    }
}
