import CountersignGateway
import CountersignGatewayTesting
import CountersignSQLite
import CountersignTesting
import Foundation
import GatewayAdmin
import GatewayHTTP
import GatewayIngest
import GatewayModel
import GatewayObservability
import GatewayStorage
import GatewayTestSupport
import Testing

/// All recorded times come from the gateway's configured clock.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct GatewayClockTests {
    @Test(arguments: TestTransport.allCases)
    func appsEventsAndAuditEntriesHaveTheGatewaysTime(_ transport: TestTransport) throws {
        let bench = try AdminBench(transport)
        let token = try bench.token("admin")
        bench.clock.advance(by: 10 * 86_400)
        func time(_ name: String, of path: String) throws -> Int64? {
            let items = try bench.ask("GET", path, nil, token).json["items"] as? [[String: Any]]
            return (items?.first?[name] as? Int).map(Int64.init)
        }

        let made = try bench.ask("POST", "apps", #"{"id":"later"}"#, token)
        #expect((made.json["app"] as? [String: Any])?["created_ms"] as? Int == Int(bench.now))
        #expect(try time("at_ms", of: "audit?app=later") == bench.now)
        let sent = try bench.client().post(
            #"{"batch":[{"type":"track","event":"A","messageId":"m-1","anonymousId":"d-1"}]}"#,
            headers: ["X-Write-Key": bench.writeKey])
        #expect(sent?.status == 200)
        #expect(try time("received_ms", of: "apps/shop/events") == bench.now)
    }

    /// Sessions are reloaded while the clock is ahead, because another process changes them.
    @Test func revocationsSurviveAClockJump() throws {
        let bench = try AdminBench()
        // The key was created slightly later than the time of the manual clock.
        bench.clock.advance(by: 60)
        try bench.apps.setEnforcement(.required, for: "shop")
        try bench.gateway.refreshApps()
        let owner = try bench.token("admin")
        let opened = try bench.ask("POST", "apps/shop/sessions", #"{"user":"ada"}"#, owner)
        let refresh = try #require(opened.json["refresh_token"] as? String)
        let exchanged = try bench.client().post(
            #"{"refresh_token":"\#(refresh)"}"#, path: "/api/refresh_token",
            headers: ["Content-Type": "application/json"])
        let token = try #require(exchanged?.json["accessToken"] as? String)
        func send(_ id: String) throws -> Int? {
            try bench.client().post(
                #"{"batch":[{"type":"track","event":"A","messageId":"\#(id)","userId":"ada"}]}"#,
                headers: ["Authorization": "Bearer " + token, "X-Write-Key": bench.writeKey])?.status
        }
        #expect(try send("m-1") == 200)
        #expect(try bench.ask("DELETE", "apps/shop/sessions?user=ada", nil, owner).status == 200)
        try bench.gateway.refreshApps()
        #expect(try send("m-2") == 401)
        let before = bench.clock.now
        bench.clock.advance(by: 365 * 86_400)
        let others = try TokenFamilyDirectory(bench.place)
        _ = try others.open(for: "bob", of: "shop")
        try bench.gateway.refreshApps()
        bench.clock.setNow(before)
        try bench.gateway.refreshApps()
        #expect(try send("m-3") == 401)
    }

    @Test func theLocalAdminAPIUsesTheGivenClock() throws {
        let bench = try AdminBench()
        let local = try LocalAdministration(
            storage: bench.place.open(), backupFolder: nil, now: { Date(timeIntervalSince1970: 7_200) })
        let answer = local.answer("GET", "/apps/shop/analytics", query: nil, ifMatch: nil, body: [])
        #expect(answer.status == 200)
        #expect(String(decoding: answer.body, as: UTF8.self).contains(#""to_ms":7200000"#))
    }

    @Test(.onSQLite("the times that its files record"))
    func storageFilesRecordTimesOfTheStoragesClock() throws {
        let folder = TemporaryFolder()
        let time = Date(timeIntervalSince1970: 1_000_000)
        let storage = try SQLiteStorage(dataDirectory: folder.url.path, now: { time })
        _ = try storage.openControl(as: .account)
        _ = try storage.openSecrets()
        _ = try storage.openTokenFamilies(refreshKey: Array(repeating: 7, count: 32))
        _ = try storage.openDeliveries()
        _ = try storage.openAnalytics(from: AnalyticsRecorder(), now: { time }, report: { _ in })
        let events = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        #expect(events.probe() == nil)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
            .filter { $0.hasSuffix(".sqlite") }
        #expect(files.count == 6)
        for file in files {
            let connection = try SQLiteConnection(path: folder.url.path + "/" + file)
            let times = try connection.all("SELECT applied_ms FROM schema_version") { $0.int64(0) }
            #expect(Set(times) == [1_000_000_000], "\(file)")
            guard file == "events.sqlite" else { continue }
            #expect(try connection.first("SELECT at_ms FROM probe") { $0.int64(0) } == 1_000_000_000)
        }
    }
}
