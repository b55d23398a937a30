import CountersignGatewayTesting
import CountersignSQLite
import CountersignTesting
import Foundation
import GatewayObservability
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayModel
@testable import GatewayStorage

/// After an app is deleted, its requests are rejected and its data is erased.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AppDeletionTests {
    private let bench: AdminBench

    init() throws { bench = try AdminBench() }

    /// Tables that may keep rows of a deleted app.
    private static let lasting: Set<String> = ["audit", "app_deletion", "app"]

    /// Names of the tables of the control database, on any engine.
    private static func controlTables() throws -> Set<String> {
        let sqlite = try SQLiteConnection(path: ":memory:")
        try Schema.migrate(sqlite, ControlDatabase.migrations)
        return Set(try sqlite.all("SELECT name FROM sqlite_schema WHERE type = 'table'") { $0.text(0) })
    }

    /// The number of an app's rows in each table.
    private func rows(of app: String) throws -> [String: Int] {
        try WholeDatabase.all(of: bench.place).reduce(into: [:]) { rows, database in
            try rows.merge(database.rows(of: app)) { $0 + $1 }
        }
    }

    private func delete(_ app: String, of bench: AdminBench) throws -> AdminBench.Answer {
        try bench.ask("DELETE", "apps/\(app)", #"{"confirm":"\#(app)"}"#, bench.token("admin"))
    }

    private func send(_ id: String, of user: String, _ bench: AdminBench, key: String? = nil) throws -> Int? {
        try bench.client().post(
            #"{"batch":[{"type":"identify","messageId":"\#(id)","userId":"\#(user)","traits":{"a":1}}]}"#,
            headers: ["X-Write-Key": key ?? bench.writeKey])?.status
    }

    @Test func deletingAnAppNeedsAnOwnerAndTheID() throws {
        let path = "apps/shop"
        #expect(try bench.ask("DELETE", path, #"{"confirm":"shop"}"#, bench.token("write")).status == 403)
        let owner = try bench.token("admin")
        for body in [#"{"confirm":"Shop"}"#, #"{"confirm":""}"#, "{}", #"{"confirm":"shop","x":1}"#] {
            #expect(try bench.ask("DELETE", path, body, owner).status == 422, "\(body)")
        }
        #expect(try bench.ask("DELETE", path, nil, owner).status >= 400)
        #expect(try bench.ask("DELETE", "apps/none", #"{"confirm":"none"}"#, owner).status == 404)
        #expect(try bench.apps.app(id: "shop").id == "shop")
        let done = try bench.ask("DELETE", path, #"{"confirm":"shop"}"#, owner)
        #expect(done.status == 202 && done.json["app"] as? String == "shop")
        #expect(try bench.ask("DELETE", path, #"{"confirm":"shop"}"#, owner).status == 404)
        let entry = try #require(try bench.apps.auditLog.entries(limit: 1).first)
        #expect(entry.action == "app.delete" && entry.appID == "shop")
        #expect(entry.before == #"{"id":"shop","name":"The shop"}"#)
        #expect(try bench.apps.auditLog.verify().brokenAt == nil)
    }

    @Test func aDeletedAppRejectsEventsAndTokensAtOnce() throws {
        let owner = try bench.token("admin")
        let session = try bench.ask("POST", "apps/shop/sessions", #"{"user":"ada"}"#, owner)
        let refresh = try #require(session.json["refresh_token"] as? String)
        func exchange() throws -> Int? {
            try bench.client().post(
                #"{"refresh_token":"\#(refresh)"}"#, path: "/api/refresh_token",
                headers: ["Content-Type": "application/json"])?.status
        }
        #expect(try send("m1", of: "ada", bench) == 200)
        #expect(try exchange() == 200)
        #expect(try delete("shop", of: bench).status == 202)
        #expect(try send("m2", of: "ada", bench) == 401)
        #expect(try exchange() != 200)
        #expect(
            try bench.client().post(
                "{}", path: "/track/v2/projects/shop/customers",
                headers: ["Authorization": "Token " + bench.writeKey])?.status != 200)
        for path in ["apps/shop", "apps/shop/events", "apps/shop/analytics", "apps/shop/keys"] {
            #expect(try bench.ask("GET", path, nil, owner).status == 404, "\(path)")
        }
    }

    /// Reads the list of tables from the database, so that tables added later are covered.
    @Test func deletingAnAppErasesItsRowsFromEveryTable() throws {
        let other = try bench.apps.createApp(id: "kiosk").writeKey
        try bench.gateway.refreshApps()
        // Kiosk's event is first, so that its counts are written at once. Counts of later commits may take a second.
        #expect(try send("m3", of: "cleo", bench, key: other) == 200)
        // Long enough not to occur in a random id or key by chance.
        let users = ["ada@example.com", "bob@example.com"]
        for (index, user) in users.enumerated() { #expect(try send("m\(index)", of: user, bench) == 200) }
        bench.gateway.analytics.flush()
        var filled: [String] = []
        for database in try WholeDatabase.all(of: bench.place) {
            for app in ["shop", "kiosk"] {
                filled += try database.addRows(of: app, count: 3, except: Self.lasting.union(["event"]))
            }
        }
        #expect(Set(filled).count > 15, "\(filled)")
        for (table, rows) in try rows(of: "shop") where !Self.lasting.contains(table) {
            #expect(rows > 0, "the test made no row in \(table)")
        }
        let kiosk = try rows(of: "kiosk")
        #expect(try delete("shop", of: bench).status == 202)
        // Rows that requests are checked against are deleted at once.
        let control = try Self.controlTables()
        #expect(control.count > 10)
        let kept = try rows(of: "shop").filter { $0.value > 0 && control.contains($0.key) }.keys
        #expect(Set(kept) == ["audit", "app_deletion"])
        bench.gateway.eraseDeletedApps()
        let left = try rows(of: "shop").filter { $0.value > 0 }
        #expect(Set(left.keys).isSubset(of: Self.lasting), "\(left)")
        // Rows of a customer or a session may have no column for the app.
        for text in users {
            for database in try WholeDatabase.all(of: bench.place) where database.name != "control" {
                #expect(try database.tables(with: text).filter { $0 != "audit" }.isEmpty, "\(text)")
            }
        }
        let after = try rows(of: "kiosk")
        for (table, rows) in kiosk {
            // The user may have been listed meanwhile.
            #expect(table == "app_user" ? after[table] ?? 0 >= rows : after[table] == rows, "\(table)")
        }
        #expect(try bench.ask("GET", "apps/kiosk/customers/cleo", nil, bench.token("write")).status == 200)
    }

    /// Covers counts in memory, and rows whose key contains the app's id.
    @Test func deletingAnAppErasesItsMetricsAndDeliveryAttempts() throws {
        let server = try WebhookServer { _ in .answer(204) }
        defer { server.close() }
        let webhook = #"{"url":"\#(server.url)","allow_private":true}"#
        #expect(try bench.ask("POST", "apps/shop/webhooks", webhook, bench.token("admin")).status == 201)
        #expect(try send("m1", of: "ada", bench) == 200)
        #expect(server.waitForRequest())
        bench.gateway.waitForWebhooks()
        // From here on, a reader watches the live feed.
        _ = bench.gateway.live.entries(after: nil)
        #expect(try send("m2", of: "ada", bench) == 200)
        #expect(bench.gateway.live.entries(after: 0).entries.count == 1)
        // A delivery in progress would add to the webhook's metrics after the deletion.
        #expect(server.waitForRequest())
        bench.gateway.waitForWebhooks()
        func metrics() throws -> String { try #require(try bench.client().get("/metrics")).body }
        #expect(try metrics().contains(#"countersign_webhook_attempts_total{app="shop""#))
        let deliveries = try bench.place.connection(to: "webhooks")
        try deliveries.run(
            """
            INSERT INTO delivery (endpoint_id, message_id, kind, events, attempt, at_ms, duration_ms, answer)
            VALUES ('alerts:shop', 'm', 'alert', 0, 1, ?, 1, ''), ('alerts:kiosk', 'm', 'alert', 0, 1, ?, 1, '')
            """, .integer(bench.now), .integer(bench.now))
        #expect(try delete("shop", of: bench).status == 202)
        #expect(try !metrics().contains(#"app="shop""#))
        // The reader still sees the last verdicts.
        #expect(bench.gateway.live.entries(after: 0).entries.count == 1)
        // A request after the deletion adds no metrics of the app.
        #expect(try send("m3", of: "ada", bench) == 401)
        bench.gateway.eraseDeletedApps()
        #expect(try !metrics().contains(#"app="shop""#))
        let left = try deliveries.all("SELECT endpoint_id FROM delivery") { $0.text(0) }
        #expect(!left.contains("alerts:shop"))
        // Another app may use the id after this time.
        bench.clock.advance(by: 61)
        bench.gateway.eraseDeletedApps()
        #expect(bench.gateway.live.entries(after: 0).entries.isEmpty)
        #expect(try bench.apps.createApp(id: "shop").app.id == "shop")
    }

    @Test func deletingAnAppErasesAllItsEventsAndNoOthers() throws {
        let other = try bench.apps.createApp(id: "kiosk").writeKey
        try bench.gateway.refreshApps()
        for part in 0..<3 {
            let events = (0..<300).map {
                #"{"type":"track","event":"x","messageId":"\#(part)-\#($0)","userId":"u\#($0)"}"#
            }.joined(separator: ",")
            for key in [bench.writeKey, other] {
                #expect(
                    try bench.client().post(#"{"batch":[\#(events)]}"#, headers: ["X-Write-Key": key])?.status
                        == 200)
            }
        }
        #expect(try delete("shop", of: bench).status == 202)
        bench.gateway.eraseDeletedApps()
        let events = try bench.place.connection(to: "events")
        let left = try events.all("SELECT DISTINCT app_id FROM event") { $0.text(0) }
        #expect(left == ["kiosk"])
        #expect(try events.first("SELECT count(*) FROM event") { $0.int(0) } == 900)
        #expect(try send("n", of: "u1", bench, key: other) == 200)
    }

    @Test func theIDIsFreeAfterErasureAndTheExpiryOfTokens() throws {
        let owner = try bench.token("admin")
        #expect(try send("m1", of: "ada", bench) == 200)
        _ = try bench.ask("POST", "apps/shop/sessions", #"{"user":"ada"}"#, owner)
        func make() throws -> AdminBench.Answer {
            try bench.ask("POST", "apps", #"{"id":"shop"}"#, owner)
        }
        func deletion() throws -> [String: Any]? {
            (try bench.ask("GET", "app-deletions", nil, owner).json["items"] as? [[String: Any]])?.first
        }
        #expect(try delete("shop", of: bench).status == 202)
        #expect(try make().status == 409)
        #expect(try deletion()?["erased_ms"] is NSNull)
        bench.gateway.eraseDeletedApps()
        #expect(try deletion()?["erased_ms"] is Int)
        #expect(try make().status == 409)
        bench.clock.advance(by: 86_000)
        bench.gateway.eraseDeletedApps()
        #expect(try make().status == 409)
        // Simulates requests that were in flight while the rows were deleted.
        for database in try WholeDatabase.all(of: bench.place) where database.name != "control" {
            _ = try database.addRows(of: "shop", count: 2, except: try Self.controlTables().union(["event"]))
        }
        bench.clock.advance(by: 1_000)
        bench.gateway.eraseDeletedApps()
        let left = try rows(of: "shop").filter { $0.value > 0 }.keys
        #expect(Set(left).isSubset(of: Self.lasting), "\(left)")
        #expect(try deletion() == nil)
        let made = try make()
        #expect(made.status == 201)
        // The new app has nothing of the old one, and its users are listed.
        let key = try #require(made.json["write_key"] as? String)
        #expect(try send("m1", of: "ada", bench, key: key) == 200)
        let ada = try bench.ask("GET", "apps/shop/customers/ada", nil, owner)
        #expect(ada.json["events"] as? Int == 1)
        var users: [String] = []
        try bench.place.open().log.users(of: "shop", after: "") {
            users.append($0)
            return false
        }
        #expect(users == ["ada"])
    }

    @Test func withoutTokensTheIDIsFreeAfterAMinute() throws {
        #expect(try delete("shop", of: bench).status == 202)
        bench.gateway.eraseDeletedApps()
        #expect(throws: GatewayError.self) { try bench.apps.createApp(id: "shop") }
        bench.clock.advance(by: 61)
        bench.gateway.eraseDeletedApps()
        #expect(try bench.apps.createApp(id: "shop").app.id == "shop")
    }

    @Test(.onSQLite("its trigger")) func anErasureThatFailsDoesNotDelayOthers() throws {
        _ = try bench.apps.createApp(id: "kiosk")
        let control = try bench.place.connection(to: "control")
        try control.run(
            """
            CREATE TRIGGER kept BEFORE UPDATE ON app_deletion WHEN old.app_id = 'kiosk'
            BEGIN SELECT RAISE(ABORT, 'kept'); END
            """)
        for app in ["kiosk", "shop"] { #expect(try delete(app, of: bench).status == 202) }
        bench.gateway.eraseDeletedApps()
        func erased() throws -> [Bool] {
            try bench.apps.deletions().map { $0.erasedMilliseconds != nil }
        }
        #expect(try erased() == [false, true])
        try control.run("DROP TRIGGER kept")
        bench.gateway.eraseDeletedApps()
        #expect(try erased() == [true, true])
    }

    /// The app was deleted while no gateway ran, or the gateway stopped before it had erased all rows.
    @Test func theErasureOfADeletedAppContinuesAfterARestart() throws {
        #expect(try send("m1", of: "ada", bench) == 200)
        bench.gateway.stop()
        _ = try bench.apps.deleteApp(id: "shop")
        let next = try AdminBench.start(bench.place, bench.clock)
        defer { next.stop() }
        next.eraseDeletedApps()
        let left = try rows(of: "shop").filter { $0.value > 0 }
        #expect(Set(left.keys).isSubset(of: Self.lasting), "\(left)")
        #expect(try bench.apps.deletions().first?.erasedMilliseconds != nil)
    }
}
