import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import GatewayModel
import GatewayObservability
import Testing

extension PostgreSQLTests.SeveralGatewaysTests {
    private func messages(_ database: TestDatabase) throws -> Int {
        try database.connect().first("SELECT count(*) FROM cluster_message") { $0.int(0) } ?? -1
    }

    @Test func theLiveFeedOfOneGatewayHasTheVerdictsOfAllGateways() throws {
        try use(3) { bench, database in
            #expect(try bench.store(1, "before", token: nil) == 401)
            #expect(try messages(database) == 0)
            let feed = bench.gateways[0].live
            var last = feed.entries(after: nil).lastID
            var seen: [LiveFeed.Entry] = []
            var sent = 0
            // The other gateways learn within a second that a client is watching.
            while !seen.contains(where: { $0.key.verdict == .rejected })
                || !seen.contains(where: { $0.key.verdict == .accepted })
            {
                sent += 1
                #expect(try bench.store(1, "a\(sent)", token: bench.token) == 200)
                #expect(try bench.store(2, "b\(sent)", token: nil) == 401)
                let page = feed.entries(after: last)
                #expect(page.missed == 0)
                last = page.lastID
                seen += page.entries
            }
            #expect(seen.map(\.id) == seen.map(\.id).sorted() && Set(seen.map(\.id)).count == seen.count)
            let accepted = try #require(seen.first { $0.key.verdict == .accepted })
            #expect(accepted.userID == "user-1" && accepted.key.appID == "shop" && accepted.key.code == nil)
            #expect(accepted.key.endpoint == "/v1/batch" && accepted.key.enforcement == .required)
            let rejected = try #require(seen.first { $0.key.verdict == .rejected })
            #expect(rejected.key.code == .missingToken && !rejected.requestID.isEmpty)
            // Each verdict arrives once, and only at the gateway with a watcher.
            #expect(seen.count <= 2 * sent)
            #expect(bench.gateways[1].live.entries(after: nil).entries.isEmpty)
        }
    }

    @Test func lastMinuteCountsAreSummedOverAllGateways() throws {
        try use(2) { bench, _ in
            let headers = ["Authorization": "Bearer \(bench.admin)"]
            func minute(_ gateway: Int) throws -> [String: Int]? {
                try bench.ask(gateway, "GET", "/admin/api/overview", headers: headers).json["last_minute"]
                    as? [String: Int]
            }
            for number in 0..<3 { #expect(try bench.store(0, "a\(number)", token: bench.token) == 200) }
            #expect(try bench.store(1, "b", token: bench.token) == 200)
            #expect(try bench.store(1, "c", token: nil) == 401)
            let sum = ["accepted": 4, "rejected": 1, "events": 4]
            // Each heartbeat publishes figures. The first one may have measured them before the requests.
            for _ in 0..<30 where try minute(0) != sum { bench.storage.cluster?.waitForGateways() }
            #expect(try minute(1) == sum)
            let cluster = try bench.ask(1, "GET", "/admin/api/cluster", headers: headers)
            let each = (cluster.json["gateways"] as? [[String: Any]])?.compactMap {
                $0["last_minute"] as? [String: Int]
            }
            #expect(each?.compactMap { $0["accepted"] }.sorted() == [1, 3])
        }
    }

    @Test func aNULCharacterInARequestNeverCausesAServerError() throws {
        try use(1) { bench, _ in
            let headers = ["Authorization": "Bearer \(bench.admin)", "Content-Type": "application/json"]
            var answers: [(request: String, status: Int)] = []
            for path in [
                "apps", "users", "tokens", "apps/shop/keys", "apps/shop/write-keys", "apps/shop/sessions",
                "apps/shop/clients", "apps/shop/webhooks", "apps/shop/consumers", "apps/shop/projects",
                "session",
            ] {
                for members in [
                    #"{"id":"x\u0000"}"#, #"{"name":"x\u0000"}"#, #"{"user":"x\u0000"}"#,
                    #"{"description":"x\u0000"}"#, #"{"url":"https://a.example/\u0000"}"#,
                    #"{"name":"x\u0000","password":"a long password\u0000"}"#,
                ] {
                    let answer = try bench.ask(0, "POST", "/admin/api/" + path, members, headers: headers)
                    answers.append((path + members, answer.status))
                }
            }
            for path in [
                "apps/shop/events?user=x%00", "apps/shop/events?type=x%00", "apps/shop/events?name=x%00",
                "apps/shop/events?message_id=x%00", "apps/shop/sessions?user=x%00", "audit?app=x%00",
                "audit?actor=x%00", "apps/shop/analytics?sdk=x%00", "apps/shop/analytics?endpoint=x%00",
            ] {
                answers.append((path, try bench.ask(0, "GET", "/admin/api/" + path, headers: headers).status))
            }
            let stranger = try SigningKey.generate(.es256).sign(claims: [
                "sub": "ada\u{0}", "exp": 4_000_000_000, "jti": "x\u{0}",
            ])
            for (path, body) in [
                ("/oauth/token", "grant_type=refresh_token&refresh_token=x%00&client_id=y%00"),
                ("/oauth/revoke", "token=x%00&client_id=y%00"),
            ] {
                let form = ["Content-Type": "application/x-www-form-urlencoded"]
                answers.append((path, try bench.ask(0, "POST", path, body, headers: form).status))
            }
            #expect(answers.filter { $0.status >= 500 }.map(\.request) == [])
            // A sample whose token has NULs is stored.
            #expect(try bench.store(0, "a", token: stranger) == 401)
            bench.gateways[0].analytics.flush()
            let samples = try bench.ask(0, "GET", "/admin/api/apps/shop/samples", headers: headers)
            #expect((samples.json["items"] as? [Any])?.count == 1)
        }
    }

    @Test func aRecheckIsDoneByTheGatewayThatHoldsTheToken() throws {
        try use(2) { bench, database in
            let headers = ["Authorization": "Bearer \(bench.admin)", "Content-Type": "application/json"]
            #expect(try bench.change(0, "DELETE", "apps/shop/keys/\(bench.other.id)") == 204)
            #expect(try bench.store(0, "a", token: bench.other.token) == 401)
            bench.gateways[0].analytics.flush()
            let list = try bench.ask(1, "GET", "/admin/api/apps/shop/samples", headers: headers)
            let sample = try #require((list.json["items"] as? [[String: Any]])?.first?["id"] as? String)
            let path = "/admin/api/apps/shop/samples/\(sample)/recheck"
            let then = try bench.ask(1, "POST", path, headers: headers)
            #expect(then.status == 200 && then.json["note"] is String == false)
            #expect(then.json["code"] as? Int == AuthErrorCode.noMatchingPublicKeys.rawValue)
            let checks = try #require(then.json["checks"] as? [[String: Any]])
            #expect(
                checks.contains { $0["ok"] as? Bool == false }
                    && checks.contains { $0["ok"] as? Bool == true })
            // The key is imported again, so verifying the token now gives another result.
            _ = try bench.directory.addKey(try Self.otherKey.get().publicKey.pem, to: "shop")
            bench.storage.cluster?.waitForGateways()
            let now = try bench.ask(1, "POST", path, headers: headers)
            #expect(now.json["code"] is Int == false)
            // No message contains the token or its signature.
            let bodies = try database.connect().all("SELECT body FROM cluster_message") { $0.text(0) }
            let signature = try #require(bench.other.token.split(separator: ".").last)
            #expect(!bodies.isEmpty && !bodies.contains { $0.contains(signature) })
            bench.gateways[0].stop()
            let gone = try bench.ask(1, "POST", path, headers: headers)
            #expect(gone.status == 200 && (gone.json["note"] as? String)?.contains("is gone") == true)
        }
    }
}
