import CountersignCrypto
import CountersignGateway
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayAdmin

/// The setup link, signing in, the limit on attempts, the end of sessions, and API tokens.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct SignInTests {
    private func setUp(_ bench: AdminBench, _ token: String, name: String = "ada") throws -> AdminBench.Answer
    {
        try bench.ask(
            "POST", "setup", #"{"token":"\#(token)","name":"\#(name)","password":"\#(AdminBench.password)"}"#)
    }

    @Test func theSetupLinkWorksOnceForHalfAnHourAndOnlyWithoutUsers() throws {
        let bench = try AdminBench()
        #expect(try bench.ask("GET", "setup").json["needed"] as? Bool == true)
        let late = try #require(try bench.gateway.makeSetupToken())
        bench.clock.advance(by: 31 * 60)
        #expect(try setUp(bench, late).status == 403)
        let replaced = try #require(try bench.gateway.makeSetupToken())
        let token = try #require(try bench.gateway.makeSetupToken())
        #expect(try setUp(bench, replaced).status == 403)
        bench.clock.advance(by: 29 * 60)
        let made = try setUp(bench, token)
        #expect(made.status == 201)
        #expect((made.json["user"] as? [String: Any])?["role"] as? String == "owner")
        #expect(
            try bench.ask("GET", "session", nil, ["Cookie": AdminBench.visitor(made).cookie]).status == 200)
        #expect(try setUp(bench, token, name: "eve").status == 403)
        #expect(try bench.gateway.makeSetupToken() == nil)
        #expect(try bench.ask("GET", "setup").json["needed"] as? Bool == false)
        #expect(try bench.apps.admins.users().map(\.name) == ["ada"])
    }

    /// Tests use a lower scrypt cost than gateways.
    @Test func passwordsAreHashedAtTheConfiguredCost() throws {
        #expect(GatewayConfiguration(dataDirectory: "").passwordCost == Scrypt.Cost(n: 32_768, r: 8, p: 1))
        let cost = Scrypt.Cost(n: 32, r: 4, p: 2)
        let bench = try AdminBench { $0.passwordCost = cost }
        #expect(try setUp(bench, #require(try bench.gateway.makeSetupToken())).status == 201)
        let kept = try bench.apps.admins.users().map(\.password.text)
        #expect(kept.count == 1 && kept.allSatisfy { $0.hasPrefix("scrypt$32$4$2$") })
        let nobody = PasswordHash.ofNobody(cost: cost)
        #expect(nobody.text.hasPrefix("scrypt$32$4$2$") && nobody.text.count == kept.first?.count)
        #expect(!nobody.matches(AdminBench.password) && PasswordHash.ofNobody(cost: cost) != nobody)
    }

    @Test func aShortPasswordIsRejectedAndTheLinkStaysValid() throws {
        let bench = try AdminBench()
        let token = try #require(try bench.gateway.makeSetupToken())
        let short = try bench.ask(
            "POST", "setup", #"{"token":"\#(token)","name":"ada","password":"elevenbytes"}"#)
        #expect(short.status == 422)
        #expect(try setUp(bench, token).status == 201)
    }

    @Test(arguments: [nil, "https://admin.example"])
    func theSessionCookieIsLimitedToThisGateway(publicURL: String?) throws {
        let bench = try AdminBench { $0.publicURL = publicURL }
        try bench.apps.admins.createUser(name: "ada", role: .owner, password: AdminBench.passwordHash)
        let parts = try #require(try bench.signIn("ada").headers["set-cookie"]).components(separatedBy: "; ")
        if publicURL == nil {
            #expect(parts[0].hasPrefix("countersign=") && parts.contains("Path=/admin"))
            #expect(!parts.contains("Secure"))
        } else {
            #expect(parts[0].hasPrefix("__Host-countersign=") && parts.contains("Path=/"))
            #expect(parts.contains("Secure"))
        }
        #expect(parts.contains("HttpOnly") && parts.contains("SameSite=Strict"))
        #expect(parts.contains("Max-Age=43200"))
        #expect(!parts.contains { $0.hasPrefix("Domain") })
    }

    /// A page of a sibling domain can set a cookie without the prefix.
    @Test func overHTTPSOnlyTheCookieWithTheHostPrefixCounts() throws {
        let bench = try AdminBench { $0.publicURL = "https://admin.example" }
        let visitor = try bench.visitor(.owner, "ada")
        let token = visitor.cookie.dropFirst("__Host-countersign=".count)
        func status(_ cookie: String) throws -> Int {
            try bench.ask("GET", "session", nil, ["Cookie": cookie]).status
        }
        #expect(try status(visitor.cookie) == 200)
        #expect(try status("countersign=\(token)") == 401)
        #expect(try status("countersign=planted; \(visitor.cookie)") == 200)
        #expect(try status("\(visitor.cookie); countersign=planted") == 200)
        // With two cookies of the same name, the gateway's own cannot be identified.
        for planted in ["__Host-countersign=planted", "__Host-countersign="] {
            #expect(try status("\(planted); \(visitor.cookie)") == 401)
            #expect(try status("\(visitor.cookie); \(planted)") == 401)
        }
        let plain = try AdminBench()
        let other = try plain.visitor(.owner, "ada")
        let prefixed = "__Host-" + other.cookie
        #expect(try plain.ask("GET", "session", nil, ["Cookie": prefixed]).status == 401)
        #expect(try plain.ask("GET", "session", nil, ["Cookie": other.cookie]).status == 200)
    }

    @Test func aReusedUserNameStartsWithoutFailedAttempts() throws {
        let bench = try AdminBench { $0.trustedProxies = AddressRange.loopback }
        func attempt(_ password: String) throws -> Int {
            try bench.ask(
                "POST", "session", #"{"name":"kim","password":"\#(password)"}"#,
                ["X-Forwarded-For": "192.0.2.1"]
            ).status
        }
        _ = try bench.visitor(.viewer, "kim")
        _ = try bench.visitor(.owner, "root")
        for _ in 1...5 { #expect(try attempt("wrong password") == 401) }
        #expect(try attempt(AdminBench.password) == 429)
        try bench.apps.admins.deleteUser("kim")
        bench.clock.advance(by: 1)
        try bench.apps.admins.createUser(name: "kim", role: .viewer, password: AdminBench.passwordHash)
        #expect(try attempt(AdminBench.password) == 200)
    }

    @Test func wrongPasswordsAreThrottledPerAddressAndPerNameAtAnAddress() throws {
        let bench = try AdminBench { $0.trustedProxies = AddressRange.loopback }
        _ = try bench.visitor(.owner, "ada")
        func attempt(_ name: String, _ password: String, from address: String) throws -> AdminBench.Answer {
            try bench.ask(
                "POST", "session", #"{"name":"\#(name)","password":"\#(password)"}"#,
                ["X-Forwarded-For": address])
        }
        let wrong = try (1...5).map { _ in try attempt("ada", "wrong password", from: "192.0.2.1") }
        #expect(wrong.allSatisfy { $0.status == 401 })
        let throttled = try attempt("ada", AdminBench.password, from: "192.0.2.1")
        #expect(throttled.status == 429)
        #expect(throttled.json["code"] as? String == "throttled")
        #expect(throttled.headers["retry-after"] == "60")
        #expect(try attempt("ada", AdminBench.password, from: "192.0.2.2").status == 200)
        bench.clock.advance(by: 61)
        #expect(try attempt("ada", AdminBench.password, from: "192.0.2.1").status == 200)
        // Later wrong passwords are counted from zero.
        #expect(try attempt("ada", "wrong password", from: "192.0.2.1").status == 401)
        // Many names from one address.
        let names = try (1...25).map { try attempt("user-\($0)", "wrong password", from: "192.0.2.3").status }
        #expect(names == Array(repeating: 401, count: 20) + Array(repeating: 429, count: 5))
        let blocks = try bench.apps.auditLog.entries(limit: 100).filter { $0.action == "session.blocked" }
        #expect(blocks.map(\.target) == ["user-20", "ada"])
        #expect(blocks.map(\.after) == [#"{"address":"192.0.2.3"}"#, #"{"address":"192.0.2.1"}"#])
        #expect(blocks.allSatisfy { $0.actor == "anonymous" })
    }

    @Test func addressesOfAnIPv6NetworkShareOneThrottle() {
        let throttle = SignInThrottle()
        let waits = (1...30).map { throttle.begin(name: "user-\($0)", address: "2001:db8::\($0)", at: 0) }
        #expect(waits.filter { $0 == nil }.count == 20)
        let mapped = (1...6).map { number in
            throttle.begin(
                name: "ada", address: number.isMultiple(of: 2) ? "192.0.2.9" : "::ffff:192.0.2.9", at: 0)
        }
        #expect(mapped.filter { $0 == nil }.count == 5)
    }

    @Test func aNameIsThrottledOverAllAddressesExceptKnownOnes() {
        let throttle = SignInThrottle()
        #expect(throttle.begin(name: "ada", address: "192.0.2.1", at: 0) == nil)
        throttle.succeed(name: "ada", address: "192.0.2.1")
        let waits = (1...200).map { throttle.begin(name: "ada", address: "2001:db8:0:\($0)::1", at: 0) }
        #expect(waits.filter { $0 == nil }.count == 50)
        #expect(throttle.begin(name: "ada", address: "192.0.2.1", at: 0) == nil)
        #expect(throttle.begin(name: "eve", address: "192.0.2.2", at: 0) == nil)
    }

    @Test func aSuccessfulOrUncountedAttemptEndsTheBlockThatItStarted() {
        // Attempts for 24 other names failed at this address, each after the end of the last block.
        for isRight in [true, false] {
            let throttle = SignInThrottle()
            var now: Int64 = 0
            for number in 1...24 {
                #expect(throttle.begin(name: "user-\(number)", address: "192.0.2.1", at: now) == nil)
                now += 17 * 60_000
            }
            #expect(throttle.begin(name: "ada", address: "192.0.2.1", at: now) == nil)
            if isRight {
                throttle.succeed(name: "ada", address: "192.0.2.1")
            } else {
                throttle.takeBack(name: "ada", address: "192.0.2.1")
            }
            #expect(!throttle.isBlocked(name: "ada", address: "192.0.2.1", at: now))
            #expect(throttle.begin(name: "ada", address: "192.0.2.1", at: now) == nil)
        }
    }

    @Test func settingTheClockBackDoesNotProlongASignInBlock() {
        let throttle = SignInThrottle()
        let day: Int64 = 86_400_000
        for _ in 1...5 { _ = throttle.begin(name: "ada", address: "192.0.2.1", at: day) }
        #expect(throttle.isBlocked(name: "ada", address: "192.0.2.1", at: day - 30_000))
        #expect(!throttle.isBlocked(name: "ada", address: "192.0.2.1", at: 0))
        let waits = (1...6).map { _ in throttle.begin(name: "ada", address: "192.0.2.1", at: 0) }
        #expect(waits == [nil, nil, nil, nil, nil, 60])
    }

    @Test func attemptsForManyOtherNamesDoNotEndABlock() {
        let throttle = SignInThrottle()
        for _ in 1...5 { _ = throttle.begin(name: "ada", address: "192.0.2.1", at: 0) }
        // Each attempt has three counters: for its name, its address and both. So the limit of 10,000
        // counters is exceeded.
        for number in 1...4_000 {
            _ = throttle.begin(
                name: "user-\(number)", address: "2001:db8:\(String(number, radix: 16))::1", at: 1)
        }
        #expect(throttle.begin(name: "ada", address: "192.0.2.1", at: 2) != nil)
    }

    @Test func concurrentSignInAttemptsAreAllCounted() async throws {
        let bench = try AdminBench()
        _ = try bench.visitor(.owner, "ada")
        // An address may have at most four password checks at once.
        let statuses = try await withThrowingTaskGroup(of: [Int].self) { group in
            for _ in 0..<3 {
                group.addTask { try (0..<4).map { _ in try bench.signIn("ada", "wrong password").status } }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(statuses.filter { $0 == 401 }.count == 5)
        #expect(statuses.filter { $0 == 429 }.count == 7)
    }

    @Test func anUnknownNameIsAnsweredLikeAWrongPassword() throws {
        let bench = try AdminBench()
        _ = try bench.visitor(.owner, "ada")
        let (known, unknown) = (
            try bench.signIn("ada", "wrong password"), try bench.signIn("eve", "wrong password")
        )
        for member in ["status", "code", "detail", "title", "type"] {
            #expect("\(known.json[member] ?? "")" == "\(unknown.json[member] ?? "")")
        }
        #expect(known.status == 401 && unknown.status == 401)
    }

    @Test func aSessionEndsAfterTwelveHoursOrBySigningOut() throws {
        let bench = try AdminBench()
        let visitor = try bench.visitor(.viewer, "ada")
        let cookie = ["Cookie": visitor.cookie]
        bench.clock.advance(by: 12 * 3_600 - 1)
        #expect(try bench.ask("GET", "session", nil, cookie).status == 200)
        bench.clock.advance(by: 1)
        #expect(try bench.ask("GET", "session", nil, cookie).status == 401)
        let second = AdminBench.visitor(try bench.signIn("ada"))
        let out = try bench.ask("DELETE", "session", nil, second.headers)
        #expect(out.status == 204)
        #expect(out.headers["set-cookie"]?.contains("Max-Age=0") == true)
        #expect(try bench.ask("GET", "session", nil, ["Cookie": second.cookie]).status == 401)
    }

    @Test(arguments: ["password", "role", "deletion"])
    func aChangeToAUserEndsTheUsersSessions(change: String) throws {
        let bench = try AdminBench()
        let owner = try bench.token("admin")
        let visitor = try bench.visitor(.operator, "ada")
        _ = try bench.visitor(.owner, "root")
        let tag = try #require(try bench.ask("GET", "users/ada", nil, owner).headers["etag"])
        let headers = owner.merging(["If-Match": tag]) { $1 }
        let answer =
            switch change {
            case "password":
                try bench.ask("PATCH", "users/ada", #"{"password":"another password"}"#, headers)
            case "role": try bench.ask("PATCH", "users/ada", #"{"role":"viewer"}"#, headers)
            default: try bench.ask("DELETE", "users/ada", nil, headers)
            }
        #expect([200, 204].contains(answer.status))
        #expect(try bench.ask("GET", "session", nil, ["Cookie": visitor.cookie]).status == 401)
    }

    @Test func theLastOwnerCannotBeDeletedOrDemoted() throws {
        let bench = try AdminBench()
        let owner = try bench.token("admin")
        _ = try bench.visitor(.owner, "ada")
        let any = owner.merging(["If-Match": "*"]) { $1 }
        #expect(try bench.ask("DELETE", "users/ada", nil, any).status == 409)
        #expect(try bench.ask("PATCH", "users/ada", #"{"role":"operator"}"#, any).status == 409)
        #expect(try bench.apps.admins.users().map(\.role) == [.owner])
        _ = try bench.visitor(.owner, "eve")
        #expect(try bench.ask("PATCH", "users/ada", #"{"role":"operator"}"#, any).status == 200)
        #expect(try bench.ask("DELETE", "users/eve", nil, any).status == 409)
    }

    @Test func anAPITokenIsShownOnceAndStoredAsAHash() throws {
        let bench = try AdminBench()
        let owner = try bench.token("admin")
        let made = try bench.ask(
            "POST", "tokens", #"{"name":"ci","scopes":["read"],"expires_ms":\#(bench.now + 1_000)}"#, owner)
        #expect(made.status == 201)
        let text = try #require(made.json["token"] as? String)
        let id = try #require(made.json["id"] as? String)
        let bearer = ["Authorization": "Bearer \(text)"]
        #expect(try bench.ask("GET", "apps", nil, bearer).status == 200)
        #expect(try !bench.ask("GET", "tokens", nil, owner).body.contains(text))
        #expect(try bench.ask("GET", "tokens/\(id)", nil, owner).json["name"] as? String == "ci")
        #expect(try !bench.ask("GET", "audit", nil, owner).body.contains(text))
        for database in try WholeDatabase.all(of: bench.place) {
            #expect(try database.tables(with: text) == [], "\(database.name) holds the token")
        }
        bench.clock.advance(by: 1)
        #expect(try bench.ask("GET", "apps", nil, bearer).status == 401)
        let other = try bench.ask("POST", "tokens", #"{"name":"x","scopes":["write"]}"#, owner).json
        let second = ["Authorization": "Bearer \(other["token"] as? String ?? "")"]
        #expect(try bench.ask("GET", "apps", nil, second).status == 200)
        #expect(try bench.ask("DELETE", "tokens/\(other["id"] as? String ?? "")", nil, owner).status == 204)
        #expect(try bench.ask("GET", "apps", nil, second).status == 401)
        for body in [
            #"{"name":"x","scopes":[]}"#, #"{"name":"x","scopes":["root"]}"#,
            #"{"name":"x","scopes":["read"],"expires_ms":1}"#,
        ] { #expect(try bench.ask("POST", "tokens", body, owner).status == 422, "\(body)") }
    }
}
