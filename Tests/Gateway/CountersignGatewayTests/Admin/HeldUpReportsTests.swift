import CountersignCore
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayAdmin
@testable import GatewayHTTP
@testable import GatewayModel
@testable import GatewayObservability
@testable import GatewayStorage

/// Reports whose data cannot be read or written for a while.
@Suite(.ownThreads, .timeLimit(.minutes(1)))
struct HeldUpReportsTests {
    @Test(.onSQLite("its file is locked"), arguments: ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
    func aLockedAnalyticsFileDelaysNoAdminRequest(lock: String) throws {
        let bench = try AdminBench()
        let owner = try bench.token("admin")
        let other = try bench.place.connection(to: "analytics")
        try other.run(lock)
        // Its count cannot be stored while the file is locked.
        _ = try bench.client().post(batch(trackEvent("m")), headers: ["X-Write-Key": bench.writeKey])
        // If requests waited for the lock, each would take five seconds. A busy machine may delay one.
        func isShort(_ status: () throws -> Int) throws -> Bool {
            try (1...3).contains { _ in
                var answer = 0
                let duration = try ContinuousClock().measure { answer = try status() }
                #expect(answer == 200)
                return duration < .seconds(5)
            }
        }
        for path in ["apps", "apps/shop", "apps/shop/analytics", "apps/shop/samples", "overview"] {
            #expect(try isShort { try bench.ask("GET", path, nil, owner).status }, "\(path)")
        }
        let changes = try isShort {
            let plan = try bench.ask("GET", "apps/shop/enforcement", nil, owner)
            let change = owner.merging(["If-Match": plan.headers["etag"] ?? ""]) { $1 }
            return try bench.ask("PUT", "apps/shop/enforcement", #"{"state":"disabled"}"#, change).status
        }
        #expect(changes)
        try other.run("ROLLBACK")
    }

    @Test func appsAreShownWithoutCountsThatCannotBeRead() throws {
        let place = try TestStorage()
        let directory = try place.openControl()
        _ = try directory.createApp(id: "shop")
        let routes = AppRoutes(activity: { _, _ in nil }, writeKeyUses: { [:] }, customers: { [] }).all
        let route = try #require(routes.first { $0.operation.path == "/apps/{app}" })
        let answer = try route.respond(
            AdminRequest(request("/apps/shop"), ["shop"]), AdminIdentity(name: "ann", role: .viewer),
            directory, at: 0)
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(text.contains(#""last_24h":null"#) && text.contains(#""last_request_ms":null"#))
    }

    @Test func aSlowReportDoesNotDelayOtherAdminRequests() throws {
        let gate = DispatchSemaphore(value: 0)
        let report = AdminRoute("GET", "/report", nil, "Wait", .nothing) { call in
            gate.wait()
            return call.noContent
        }
        let setting = AdminRoute("GET", "/setting", nil, "End the wait", .nothing) { call in
            gate.signal()
            return call.noContent
        }
        let api = AdminAPI(
            directory: try TestStorage().openControl(), publicURL: nil, isSecure: false,
            routes: [report.on(.data), setting], cluster: nil, now: { Date() }, changed: {})
        let router = Router(api.endpoints)
        func begin(_ path: String) throws -> DispatchSemaphore {
            let done = DispatchSemaphore(value: 0)
            guard case .later(let start, _) = router.route(request(path)) else { throw POSIXError(.EINVAL) }
            start { done.signal() }
            return done
        }
        let ended = try begin("/report")
        try begin("/setting").wait()
        ended.wait()
    }

    @Test func waitingSignInsLeavePermitsForOtherRequests() throws {
        let routes = ["/sign-in", "/setting"].map {
            AdminRoute("GET", $0, nil, "", .nothing) { $0.noContent }
        }
        let api = AdminAPI(
            directory: try TestStorage().openControl(), publicURL: nil, isSecure: false,
            routes: [routes[0].on(.password), routes[1]], cluster: nil, now: { Date() }, changed: {})
        let router = Router(api.endpoints)
        func status(_ path: String, of number: Int) -> Int? {
            let request = request(path)
            request.clientAddress = "192.0.2.\(number)"
            guard case .answer(let response) = router.route(request) else { return nil }
            return response.status
        }
        #expect((1...17).map { status("/sign-in", of: $0) } == Array(repeating: nil, count: 16) + [503])
        #expect(status("/setting", of: 17) == nil)
    }

    @Test func workThatTimedOutIsNotWaitedForAgain() {
        let wait = BoundedWait(queue: DispatchQueue(label: "late"), milliseconds: 1_000)
        let (gate, begun) = (DispatchSemaphore(value: 0), Lock(0))
        let work: @Sendable () -> Int = {
            begun.withLock { $0 += 1 }
            return 1
        }
        #expect(wait.result(of: work) == 1)
        let late: @Sendable () -> Int = {
            gate.wait()
            return 2
        }
        #expect(wait.result(of: late) == nil)
        for _ in 0..<1_000 { #expect(wait.result(of: work) == nil) }
        #expect(begun.withLock { $0 } == 1)
        gate.signal()
    }

    private func request(_ path: String) -> HTTPRequest {
        HTTPRequest(method: "GET", path: "/admin/api" + path, receivedMilliseconds: 0)
    }

    // MARK: Counts

    private func counts(of minutes: Range<Int64>, names: Int) -> GatheredAnalytics {
        var gathered = GatheredAnalytics()
        for minute in minutes {
            for name in 0..<names {
                gathered.count(
                    GatheredAnalytics.Minute(
                        start: minute * 60_000,
                        key: VerdictKey(
                            appID: "shop", endpoint: "", verdict: .accepted, code: nil, enforcement: nil,
                            client: ClientInfo(sdk: "sdk-\(name)", appVersion: nil), keyID: nil)))
            }
        }
        return gathered
    }

    @Test func countsThatCannotBeWrittenAreBoundedAndEachIsAccountedFor() {
        var pending = GatheredAnalytics()
        let (minutes, names): (Int64, Int) = (60 * 24, 100)
        for hour in Int64(0)..<24 {
            pending.add(counts(of: hour * 60..<hour * 60 + 60, names: names))
            #expect(pending.counts.count <= GatheredAnalytics.mostCounts)
        }
        // After minutes are merged into hours, a day fits in memory (hours times names), so nothing is dropped.
        #expect(pending.dropped == 0)
        #expect(pending.counts.values.reduce(0, +) == Int(minutes) * names)
        let hours: Int64 = 24 * 30
        for hour in Int64(24)..<hours {
            pending.add(counts(of: hour * 60..<hour * 60 + 1, names: names))
            #expect(pending.counts.count <= GatheredAnalytics.mostCounts)
        }
        #expect(pending.dropped > 0)
        let counted = pending.counts.values.reduce(0, +)
        #expect(counted + pending.dropped == Int(minutes + hours - 24) * names)
        let newest = pending.counts.keys.map(\.start).max() ?? 0
        #expect(newest == (hours - 1) * 3_600_000)
    }

    @Test func gatheredCountsAreBounded() {
        let gathered = counts(of: 0..<200, names: 300)
        #expect(gathered.counts.count == GatheredAnalytics.mostCounts)
        #expect(gathered.dropped == 200 * 300 - GatheredAnalytics.mostCounts)
    }

    @Test func usersAndSamplesThatCannotBeWrittenAreBounded() {
        var pending = GatheredAnalytics()
        for round in Int64(0)..<4 {
            var gathered = GatheredAnalytics()
            for number in Int64(0)..<20_000 {
                let hour = GatheredAnalytics.Hour(appID: "\(number % 1_000)", start: round * 3_600_000)
                gathered.users[hour] = DistinctCounter()
                gathered.failedUsers.insert(
                    .init(hour: hour, code: .expired, appVersion: "", user: UInt64(number)))
            }
            pending.add(gathered)
        }
        #expect(pending.users.count <= GatheredAnalytics.mostHours)
        #expect(pending.failedUsers.count <= GatheredAnalytics.mostFailedUsers)
        #expect(pending.users.keys.contains { $0.start == 3 * 3_600_000 })
        #expect(pending.failedUsers.contains { $0.hour.start == 3 * 3_600_000 })
    }
}
