import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayAdmin
@testable import GatewayHTTP
@testable import GatewayModel
@testable import GatewayObservability

/// Live verification results: complete after a reconnect, sampled only where the stream says so.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct LiveEventsTests {
    private final class Bench {
        let time = Lock<UInt64>(1_000_000_000_000)
        let feed: LiveFeed

        init(capacity: Int = 2_000, started: Double = 1_800_000_000) {
            feed = LiveFeed(
                capacity: capacity, started: Date(timeIntervalSince1970: started), chance: 0,
                nanoseconds: { [time] in time.withLock { $0 } })
        }

        func publish(_ count: Int = 1, user: String? = nil, code: AuthErrorCode? = nil) {
            for _ in 0..<count {
                feed.publish { id in
                    LiveFeed.Entry(
                        id: id, atMilliseconds: 0,
                        key: VerdictKey(
                            appID: "shop", endpoint: "/v1/batch",
                            verdict: code == nil ? .accepted : .rejected,
                            code: code, enforcement: nil, client: ClientInfo(), keyID: nil),
                        userID: user, network: "", requestID: "", sampleID: nil)
                }
            }
        }

        func watch(
            after id: UInt64? = nil, _ filter: LiveEvents.Filter = .init(), mask: UserMask = .none,
            beside: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() }
        ) -> LiveEvents {
            LiveEvents(
                feed, after: id, filter, mask, nanoseconds: { [time] in time.withLock { $0 } },
                beside: beside)
        }

        /// Lines that the next poll sends, a tenth of a second later.
        func next(_ watcher: LiveEvents) -> [String] {
            time.withLock { $0 += 100_000_000 }
            var text = ""
            let stream = watcher.stream
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4_096) { buffer in
                while let count = try? stream.read(into: buffer), count > 0 {
                    text += String(decoding: buffer[..<count], as: UTF8.self)
                }
            }
            return text.split(separator: "\n").map(String.init)
        }
    }

    @Test func aLiveFeedRefreshRunsOffTheServersThread() {
        let bench = Bench()
        let refreshes = Lock<[@Sendable () -> Void]>([])
        let watcher = bench.watch { refresh in refreshes.withLock { $0.append(refresh) } }
        #expect(bench.next(watcher) == [])
        // No second refresh starts while one is running.
        #expect(bench.next(watcher) == [])
        #expect(refreshes.withLock { $0.count } == 1)
        for refresh in refreshes.withLock({ $0 }) { refresh() }
        #expect(bench.next(watcher).first == "retry: 1000")
    }

    /// Other gateways of a cluster are notified, so that they share their results.
    @Test func aNewWatcherIsReportedOnce() {
        let bench = Bench()
        let told = Lock(0)
        bench.feed.whenWatched { told.withLock { $0 += 1 } }
        let watcher = bench.watch()
        _ = bench.next(watcher)
        #expect(told.withLock { $0 } == 1)
        _ = bench.next(watcher)
        _ = bench.next(bench.watch())
        #expect(told.withLock { $0 } == 1)
        // No client has watched for a minute.
        bench.time.withLock { $0 += 60_000_000_000 }
        _ = bench.next(bench.watch())
        #expect(told.withLock { $0 } == 2)
    }

    private func ids(_ lines: [String]) -> [UInt64] {
        zip(lines, lines.dropFirst()).compactMap { event, id in
            event == "event: verdict" ? UInt64(id.dropFirst(4)) : nil
        }
    }

    private let first: UInt64 = 1_800_000_000_000_000 << 12

    @Test func aReconnectedWatcherGetsMissedVerdictsOnce() {
        let bench = Bench()
        let watcher = bench.watch()
        #expect(
            bench.next(watcher) == ["retry: 1000", "event: sampling", "id: \(first)", #"data: {"one_in":1}"#])
        bench.publish(3)
        #expect(ids(bench.next(watcher)) == [first + 1, first + 2, first + 3])
        bench.publish(500)
        let lines = bench.next(bench.watch(after: first + 3))
        #expect(ids(lines) == (first + 4...first + 503).map { $0 })
        #expect(!lines.contains("event: gap"))
    }

    @Test func droppedVerdictsAreReported() {
        let bench = Bench(capacity: 3)
        _ = bench.next(bench.watch())
        bench.publish(10)
        let lines = bench.next(bench.watch(after: first))
        let kept = ids(lines)
        #expect((3..<6).contains(kept.count) && kept.last == first + 10)
        #expect(lines.first == "event: gap" && lines[1] == #"data: {"missed":\#(10 - kept.count)}"#)
        // No client has watched for more than a minute, so nothing is stored.
        bench.time.withLock { $0 += 61_000_000_000 }
        bench.publish()
        #expect(bench.next(bench.watch(after: first + 10)).contains(#"data: {"missed":1}"#))
    }

    @Test func afterARestartTheNumberOfMissedVerdictsIsUnknown() {
        let later = Bench(started: 1_800_000_060)
        _ = later.next(later.watch())
        later.publish(2)
        let lines = later.next(later.watch(after: first + 10))
        #expect(lines.contains(#"data: {"missed":null}"#))
        let started = first + (60_000_000 << 12)
        #expect(ids(lines) == [started + 1, started + 2])
    }

    @Test func verdictsOfOtherGatewaysAreMergedAndTheirLossIsReported() {
        let (here, there) = (Bench(), Bench(capacity: 4, started: 1_800_000_060))
        let watcher = here.watch()
        _ = here.next(watcher)
        // The other gateway has not been asked to share.
        there.publish(user: "ada")
        #expect(there.feed.takeShared().entries.isEmpty)
        there.feed.share(forSeconds: 15)
        there.publish(5, user: "ada", code: .expired)
        here.publish()
        let shared = there.feed.takeShared()
        #expect(shared.entries.count == 4 && shared.missed == 1)
        here.feed.add(LiveFeed.Shared(json: shared.json))
        let lines = here.next(watcher)
        #expect(ids(lines) == (first + 1...first + 5).map { $0 })
        #expect(lines.prefix(2) == ["event: gap", #"data: {"missed":1}"#])
        #expect(lines.filter { $0.contains(#""user":"ada""#) && $0.contains(#""code":22"#) }.count == 4)
        for _ in 0..<2 { here.feed.add(LiveFeed.Shared(json: ["missed": .integer(.max)])) }
        #expect(there.feed.takeShared().entries.isEmpty)
        there.time.withLock { $0 += 16_000_000_000 }
        there.publish()
        #expect(there.feed.takeShared().entries.isEmpty)
        // A gateway without watchers stores nothing of other gateways either.
        here.time.withLock { $0 += 61_000_000_000 }
        here.feed.add(shared)
        #expect(here.feed.entries(after: first + 6).entries.isEmpty)
    }

    @Test func aFloodIsSampledAndTheLossReported() {
        let bench = Bench()
        let watcher = bench.watch()
        _ = bench.next(watcher)
        bench.publish(1_000)
        let lines = bench.next(watcher)
        #expect(lines.contains(#"data: {"one_in":10}"#))
        #expect(ids(lines) == stride(from: first + 1, to: first + 1_000, by: 10).map { $0 })
        // A filter for rare results gets all of them.
        let expired = bench.watch(.init(code: 22))
        _ = bench.next(expired)
        bench.publish(900)
        bench.publish(2, code: .expired)
        #expect(ids(bench.next(expired)).count == 2)
        bench.publish()
        _ = bench.next(watcher)
        #expect(bench.next(watcher).contains(#"data: {"one_in":1}"#))
        #expect(bench.next(watcher).isEmpty)
        bench.publish()
        #expect(ids(bench.next(watcher)).count == 1)
    }

    @Test func nothingIsSentBetweenRefreshesAndAnIdleStreamGetsPings() {
        let bench = Bench()
        let watcher = bench.watch()
        _ = bench.next(watcher)
        bench.publish()
        bench.time.withLock { $0 -= 50_000_000 }
        #expect(bench.next(watcher).isEmpty)
        #expect(ids(bench.next(watcher)).count == 1)
        bench.time.withLock { $0 += 15_000_000_000 }
        #expect(bench.next(watcher).prefix(2) == ["event: ping", "id: \(first + 1)"])
    }

    @Test func aFilteredLiveStreamShowsUsersByPseudonym() {
        let bench = Bench()
        let mask = UserMask(key: [UInt8](repeating: 7, count: 32))
        let watcher = bench.watch(.init(appID: "shop", user: "alice@shop.example"), mask: mask)
        _ = bench.next(watcher)
        bench.publish(user: "bob@shop.example")
        bench.publish(user: "alice@shop.example")
        let lines = bench.next(watcher)
        #expect(ids(lines) == [first + 2])
        let pseudonym = mask.user("alice@shop.example", of: "shop") ?? ""
        #expect(!lines.joined().contains("alice") && lines.joined().contains(#""\#(pseudonym)""#))
    }

    @Test func aWatcherWhoseAccessIsRevokedIsDisconnected() throws {
        let bench = try AdminBench(.live)
        let visitor = try bench.visitor(.viewer, "vi")
        let token = try bench.apps.apiTokens.create(name: "tail", scopes: ["read"])
        let connections = try [visitor.headers, ["Authorization": "Bearer \(token.text)"]].map { headers in
            let connection = try RawConnection(port: bench.gateway.adminPort)
            let fields = headers.map { "\($0.key): \($0.value)\r\n" }.joined()
            connection.send("GET /admin/api/live HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n")
            #expect(connection.line() == "HTTP/1.1 200 OK")
            return connection
        }
        try bench.apps.admins.createUser(name: "ada", role: .owner, password: AdminBench.passwordHash)
        try bench.apps.admins.deleteUser("vi")
        try bench.apps.apiTokens.delete(id: token.entry.id)
        // No results are published here. The stream ends by itself, well before the first ping.
        for connection in connections {
            while case let line = try #require(connection.line()), line != "0" {
                try #require(line != "event: ping", "the stream has not ended")
            }
        }
    }

    @Test(arguments: ["app=shop", "app=shop&enforcement=only"])
    func aStreamOfADeletedAppEnds(query: String) throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let token = try fixture.apps.apiTokens.create(name: "tail", scopes: ["read"]).text
        let request = "GET /admin/api/live?\(query) HTTP/1.1\r\nHost: localhost\r\n"
        let connection = try RawConnection(port: fixture.gateway.port)
        connection.send(request + "Authorization: Bearer \(token)\r\n\r\n")
        #expect(connection.line() == "HTTP/1.1 200 OK")
        _ = try fixture.apps.deleteApp(id: "shop")
        while case let line = try #require(connection.line()), line != "0" {
            try #require(line != "event: ping", "the stream has not ended")
        }
        let next = try RawConnection(port: fixture.gateway.port)
        next.send(request + "Authorization: Bearer \(token)\r\n\r\n")
        #expect(next.answer()?.status == 404)
    }

    @Test func aRealConnectionResumesWhereItWasCut() throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let token = try fixture.apps.apiTokens.create(name: "tail", scopes: ["write"]).text
        func watch(after id: String? = nil) throws -> RawConnection {
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send(
                "GET /admin/api/live?app=shop HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\n"
                    + (id.map { "Last-Event-ID: \($0)\r\n" } ?? "") + "\r\n")
            return connection
        }
        func send() throws -> String {
            let answer = try RawConnection(port: fixture.gateway.port).post(
                batch(trackEvent(UUID().uuidString)), headers: ["X-Write-Key": fixture.writeKey])
            return try #require(answer?.headers["x-request-id"])
        }
        func nextVerdict(_ connection: RawConnection) throws -> (id: String, data: String) {
            var id = ""
            while let line = connection.line() {
                #expect(line != "event: gap")
                if line.hasPrefix("id: ") { id = String(line.dropFirst(4)) }
                if line.hasPrefix("data: {\"app\"") { return (id, line) }
            }
            throw POSIXError(.ECONNRESET)
        }
        let before = try watch()
        while let line = before.line(), line != "event: sampling" {}
        let request = try send()
        let seen = try nextVerdict(before)
        #expect(seen.data.contains(request) && seen.data.contains("MISSING_TOKEN"))
        before.close()
        let missed = try (0..<3).map { _ in try send() }
        let after = try watch(after: seen.id)
        for request in missed { #expect(try nextVerdict(after).data.contains(request)) }
    }

    @Test func theEnforcementStreamHasOnlyEnforcementChanges() throws {
        let fixture = try GatewayFixture(enforcement: .required)
        let token = try fixture.apps.apiTokens.create(name: "header", scopes: ["read"]).text
        let connection = try RawConnection(port: fixture.gateway.port)
        connection.send(
            "GET /admin/api/live?app=shop&enforcement=only HTTP/1.1\r\nHost: localhost\r\n"
                + "Authorization: Bearer \(token)\r\n\r\n")
        func next() throws -> String {
            while let line = connection.line() {
                #expect(line != "event: verdict" && line != "event: sampling")
                if line.contains("\"ramp_percent\":100") { return line }
            }
            throw POSIXError(.ECONNRESET)
        }
        #expect(try next().contains(#""state":"required""#))
        _ = try RawConnection(port: fixture.gateway.port).post(
            batch(trackEvent("a")), headers: ["X-Write-Key": fixture.writeKey])
        var plan = EnforcementPlan()
        plan.state = .optional
        plan.scheduled = .init(state: .required, atMilliseconds: 4_000_000_000_000)
        try fixture.apps.setEnforcementPlan(plan, for: "shop")
        #expect(try next().contains("4000000000000"))
    }
}
