import CountersignGatewayTesting
import CountersignTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayModel

/// The second factor: setup, sign-in, recovery codes and removal.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct SecondFactorTests {
    private let bench: AdminBench

    init() throws { bench = try AdminBench() }

    private static let password = #"{"password":"\#(AdminBench.password)"}"#

    /// An admin user with a second factor and recovery codes.
    private struct Enrolled {
        let visitor: AdminBench.Visitor
        let app: OneTimePassword
        let codes: [String]
    }

    private func begin(_ bench: AdminBench, _ visitor: AdminBench.Visitor) throws -> OneTimePassword {
        let begun = try bench.ask("POST", "session/second-factor", Self.password, visitor.headers)
        #expect(begun.status == 201)
        let secret = try #require(begun.json["secret"] as? String)
        #expect((begun.json["uri"] as? String)?.contains("secret=\(secret)&") == true)
        #expect((begun.json["qr"] as? [String])?.isEmpty == false)
        return OneTimePassword(secret: Self.bytes(secret))
    }

    private func enrol(_ bench: AdminBench, _ visitor: AdminBench.Visitor) throws -> Enrolled {
        let app = try begin(bench, visitor)
        let done = try confirm(bench, visitor, code(app, bench))
        #expect(done.status == 200)
        return Enrolled(visitor: visitor, app: app, codes: done.json["recovery_codes"] as? [String] ?? [])
    }

    private func confirm(
        _ bench: AdminBench, _ visitor: AdminBench.Visitor, _ code: String
    ) throws -> AdminBench.Answer {
        try bench.ask("POST", "session/second-factor/confirm", #"{"code":"\#(code)"}"#, visitor.headers)
    }

    private func code(_ app: OneTimePassword, _ bench: AdminBench) -> String {
        app.code(bench.now / OneTimePassword.stepMilliseconds)
    }

    private func signIn(
        _ bench: AdminBench, _ name: String, code: String?, password: String = AdminBench.password,
        from address: String? = nil
    ) throws -> AdminBench.Answer {
        let more = code.map { #","code":"\#($0)""# } ?? ""
        return try bench.ask(
            "POST", "session", #"{"name":"\#(name)","password":"\#(password)"\#(more)}"#,
            address.map { ["X-Forwarded-For": $0] } ?? [:])
    }

    /// Decodes unpadded Base32.
    private static func bytes(_ text: String) -> [UInt8] {
        var output: [UInt8] = []
        var (buffer, bits) = (0, 0)
        for character in text.utf8 {
            let value = character >= 0x41 ? Int(character) - 0x41 : Int(character) - 0x32 + 26
            buffer = (buffer << 5 | value) & 0xFFFF
            bits += 5
            if bits >= 8 {
                bits -= 8
                output.append(UInt8(buffer >> bits & 0xFF))
            }
        }
        return output
    }

    private func actions(_ bench: AdminBench) throws -> [String] {
        try bench.apps.auditLog.entries(limit: 100).map(\.action).filter {
            $0.hasPrefix("second_factor") || $0.hasPrefix("sign_in_rules")
        }.reversed()
    }

    @Test func signInNeedsACodeOnceTheSecondFactorIsConfirmed() throws {
        let visitor = try bench.visitor(.operator, "ada")
        let elsewhere = AdminBench.visitor(try bench.signIn("ada"))
        let app = try begin(bench, visitor)
        // A setup that is not confirmed has no effect.
        #expect(try bench.signIn("ada").status == 200)
        #expect(try confirm(bench, visitor, "000000").status == 422)
        let done = try confirm(bench, visitor, code(app, bench))
        let codes = try #require(done.json["recovery_codes"] as? [String])
        #expect(codes.count == 10 && Set(codes).count == 10)
        #expect(try bench.ask("GET", "session", nil, ["Cookie": elsewhere.cookie]).status == 401)
        let who = try bench.ask("GET", "session", nil, ["Cookie": visitor.cookie]).json
        let factor = try #require(who["second_factor"] as? [String: Any])
        #expect(factor["on"] as? Bool == true && factor["recovery_codes"] as? Int == 10)

        #expect(try signIn(bench, "ada", code: "").json["code"] as? String == "second_factor_required")
        let asked = try signIn(bench, "ada", code: nil)
        #expect(asked.status == 401 && asked.json["code"] as? String == "second_factor_required")
        #expect(asked.headers["set-cookie"] == nil)
        // The code that confirmed the setup cannot be used again.
        #expect(try signIn(bench, "ada", code: code(app, bench)).status == 401)
        bench.clock.advance(by: 30)
        let good = code(app, bench)
        let wrong = try signIn(bench, "ada", code: good, password: "not the password")
        #expect(wrong.status == 401 && wrong.json["code"] as? String == "unauthenticated")
        #expect(try signIn(bench, "ada", code: good).status == 200)
        #expect(try signIn(bench, "ada", code: good).status == 401)
        #expect(try actions(bench) == ["second_factor.enable"])
    }

    @Test func confirmingIsThrottledLikeSigningIn() throws {
        let visitor = try bench.visitor(.operator, "ada")
        let app = try begin(bench, visitor)
        let wrong = code(app, bench) == "000000" ? "000001" : "000000"
        for _ in 1...5 { #expect(try confirm(bench, visitor, wrong).status == 422) }
        let throttled = try confirm(bench, visitor, code(app, bench))
        #expect(throttled.status == 429 && throttled.headers["retry-after"] == "60")
        // Wrong passwords and wrong codes share one limit.
        #expect(try bench.signIn("ada").status == 429)
        #expect(try bench.ask("POST", "session/second-factor", Self.password, visitor.headers).status == 429)
        let entry = try #require(
            try bench.apps.auditLog.entries(limit: 10).first { $0.action == "session.blocked" })
        #expect(entry.target == "ada")
        bench.clock.advance(by: 61)
        #expect(try confirm(bench, visitor, code(app, bench)).status == 200)
    }

    @Test func anEnrolmentExpiresTenMinutesAfterItWasBegun() throws {
        let visitor = try bench.visitor(.operator, "ada")
        let late = try begin(bench, visitor)
        bench.clock.advance(by: 600)
        let answer = try confirm(bench, visitor, code(late, bench))
        #expect(answer.status == 409 && answer.json["code"] as? String == "conflict")
        // The setup can be started again. Codes of its first secret are then wrong.
        let app = try begin(bench, visitor)
        bench.clock.advance(by: 599)
        #expect(try confirm(bench, visitor, code(late, bench)).status == 422)
        #expect(try confirm(bench, visitor, code(app, bench)).status == 200)
    }

    @Test func aRecoveryCodeIsValidOnceAndItsUseIsAudited() throws {
        let ada = try enrol(bench, try bench.visitor(.viewer, "ada"))
        #expect(try signIn(bench, "ada", code: ada.codes[3].uppercased()).status == 200)
        #expect(try signIn(bench, "ada", code: ada.codes[3]).status == 401)
        let entry = try #require(try bench.apps.auditLog.entries(limit: 1).first)
        #expect(entry.action == "second_factor.recovery_code_used" && entry.after == #"{"left":9}"#)
        #expect(entry.actor == "ada" && entry.role == "viewer")
        for database in try WholeDatabase.all(of: bench.place) {
            for code in ada.codes {
                #expect(try database.tables(with: code) == [])
                #expect(try database.tables(with: code.replacing("-", with: "")) == [])
            }
        }
        let renewed = try bench.ask(
            "POST", "session/second-factor/recovery-codes", Self.password, ada.visitor.headers)
        let codes = try #require(renewed.json["recovery_codes"] as? [String])
        #expect(try signIn(bench, "ada", code: ada.codes[4]).status == 401)
        #expect(try signIn(bench, "ada", code: codes[0]).status == 200)
        for secret in ada.codes + codes {
            #expect(try !bench.ask("GET", "audit", nil, bench.token("read")).body.contains(secret))
        }
    }

    @Test func guessingCodesIsThrottledLikeGuessingPasswords() throws {
        let bench = try AdminBench { $0.trustedProxies = AddressRange.loopback }
        let ada = try enrol(bench, try bench.visitor(.viewer, "ada"))
        bench.clock.advance(by: 30)
        var statuses: [Int] = []
        for guess in 0..<8 {
            // A sign-in without a code neither resets nor increases the failure count.
            let asked = try signIn(bench, "ada", code: nil, from: "192.0.2.9")
            #expect(asked.status == (guess < 5 ? 401 : 429))
            statuses.append(try signIn(bench, "ada", code: "00000\(guess)", from: "192.0.2.9").status)
        }
        #expect(statuses == [401, 401, 401, 401, 401, 429, 429, 429])
        #expect(try signIn(bench, "ada", code: code(ada.app, bench), from: "192.0.2.9").status == 429)
        #expect(try bench.apps.auditLog.entries(limit: 1).first?.action == "session.blocked")
        bench.clock.advance(by: 61)
        #expect(try signIn(bench, "ada", code: code(ada.app, bench), from: "192.0.2.9").status == 200)
        // The first step of a two-step sign-in does not count as a failure of the address.
        for _ in 0..<25 { #expect(try signIn(bench, "ada", code: nil, from: "192.0.2.9").status == 401) }
    }

    @Test func changesOfTheSecondFactorNeedThePasswordAndASession() throws {
        let visitor = try bench.visitor(.owner, "ada")
        let wrong = #"{"password":"not the password"}"#
        let paths = [
            "session/second-factor", "session/second-factor/recovery-codes", "session/second-factor/disable",
        ]
        for path in paths {
            #expect(try bench.ask("POST", path, wrong, visitor.headers).status == 422, "\(path)")
            #expect(try bench.ask("POST", path, Self.password, bench.token("admin")).status == 409, "\(path)")
        }
        #expect(try bench.ask("POST", paths[1], Self.password, visitor.headers).status == 409)
        #expect(try bench.ask("POST", paths[2], Self.password, visitor.headers).status == 409)
        #expect(try confirm(bench, visitor, "123456").status == 409)
        let ada = try enrol(bench, visitor)
        #expect(try bench.ask("POST", paths[0], Self.password, visitor.headers).status == 409)
        #expect(try bench.ask("POST", paths[2], Self.password, ada.visitor.headers).status == 204)
        #expect(try bench.signIn("ada").status == 200)
        #expect(try actions(bench) == ["second_factor.enable", "second_factor.disable"])
    }

    @Test func aRequiredSecondFactorMustBeSetUpBeforeAnythingElse() throws {
        let owner = try bench.visitor(.owner, "ada")
        let member = try bench.visitor(.operator, "bob")
        let require = #"{"second_factor_required":true}"#
        let headers = owner.headers.merging(["If-Match": "*"]) { $1 }
        // The owner must have a second factor before requiring one.
        #expect(try bench.ask("PUT", "sign-in-rules", require, headers).status == 409)
        _ = try enrol(bench, owner)
        #expect(try bench.ask("PUT", "sign-in-rules", require, headers).status == 200)
        #expect(
            try bench.ask("GET", "sign-in-rules", nil, owner.headers).json["second_factor_required"] as? Bool
                == true)

        for visitor in [member, AdminBench.visitor(try bench.signIn("bob"))] {
            for (method, path) in [("GET", "apps"), ("GET", "audit"), ("POST", "apps")] {
                let rejected = try bench.ask(
                    method, path, method == "POST" ? #"{"id":"x"}"# : nil, visitor.headers)
                #expect(rejected.status == 403)
                #expect(rejected.json["code"] as? String == "second_factor_setup_required")
            }
            let who = try bench.ask("GET", "session", nil, ["Cookie": visitor.cookie]).json
            #expect((who["second_factor"] as? [String: Any])?["setup_required"] as? Bool == true)
        }
        // API tokens are not affected.
        #expect(try bench.ask("GET", "apps", nil, bench.token("read")).status == 200)
        let bob = try enrol(bench, member)
        #expect(try bench.ask("GET", "apps", nil, ["Cookie": member.cookie]).status == 200)
        let off = try bench.ask("POST", "session/second-factor/disable", Self.password, bob.visitor.headers)
        #expect(off.status == 409)
        #expect(try actions(bench) == ["second_factor.enable", "sign_in_rules.set", "second_factor.enable"])
    }

    @Test func anOwnerResetsALostFactorAndEndsItsSessions() throws {
        let owner = try bench.visitor(.owner, "root")
        let ada = try enrol(bench, try bench.visitor(.operator, "ada"))
        let path = "users/ada/second-factor"
        #expect(try bench.ask("DELETE", path, nil, ada.visitor.headers).status == 403)
        #expect(try bench.ask("GET", "users/ada", nil, owner.headers).json["second_factor"] as? Bool == true)
        #expect(try bench.ask("DELETE", path, nil, owner.headers).status == 204)
        #expect(try bench.ask("GET", "session", nil, ["Cookie": ada.visitor.cookie]).status == 401)
        #expect(try bench.signIn("ada").status == 200)
        #expect(try bench.ask("DELETE", path, nil, owner.headers).status == 204)
        #expect(try bench.ask("DELETE", "users/eve/second-factor", nil, owner.headers).status == 404)
        #expect(try actions(bench) == ["second_factor.enable", "second_factor.reset"])
    }

    @Test func theOneTimeLinkRemovesTheSecondFactorToo() throws {
        _ = try enrol(bench, try bench.visitor(.owner, "ada"))
        let link = try bench.apps.admins.makeSetupToken(at: bench.now)
        let body = #"{"token":"\#(link)","name":"ada","password":"a new one of my own"}"#
        #expect(try bench.ask("POST", "setup", body).status == 201)
        #expect(try signIn(bench, "ada", code: nil, password: "a new one of my own").status == 200)
    }

    @Test func aCommonPasswordIsRejectedWhereverOneIsSet() throws {
        let owner = try bench.visitor(.owner, "ada")
        let any = owner.headers.merging(["If-Match": "*"]) { $1 }
        let link = try bench.apps.admins.makeSetupToken(at: bench.now)
        for (method, path, body) in [
            ("POST", "setup", #"{"token":"\#(link)","name":"eve","password":"password1234"}"#),
            ("POST", "users", #"{"name":"eve","role":"viewer","password":"eve-countersign"}"#),
            ("PATCH", "users/ada", #"{"password":"passwordpassword"}"#),
            (
                "PUT", "session/password",
                #"{"current_password":"\#(AdminBench.password)","password":"qwerty123456"}"#
            ),
        ] {
            let rejected = try bench.ask(method, path, body, any)
            #expect(rejected.status == 422, "\(path)")
            let errors = rejected.json["errors"] as? [[String: Any]]
            #expect(errors?.first?["pointer"] as? String == "/password")
        }
    }
}
