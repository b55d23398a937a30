import CountersignGatewayTesting
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

/// Two users whose names differ only in their Unicode normalization form.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct UserNameTests {
    private let composed = "ana\u{EF}s"
    private let decomposed = "anai\u{308}s"

    @Test func userNamesInTwoUnicodeFormsAreTwoUsers() throws {
        let bench = try AdminBench()
        let viewer = try bench.visitor(.viewer, composed)
        let owner = try bench.visitor(.owner, decomposed)
        #expect(try bench.apps.admins.users().count == 2)
        for (visitor, name, role) in [(viewer, composed, "viewer"), (owner, decomposed, "owner")] {
            let session = try bench.ask("GET", "session", nil, visitor.headers).json
            let user = session["user"] as? [String: Any]
            #expect(user?["name"] as? String == name && user?["role"] as? String == role)
        }
        #expect(try bench.ask("GET", "users", nil, viewer.headers).status == 403)
        #expect(try bench.ask("GET", "users", nil, owner.headers).status == 200)
    }

    @Test func aPasswordIsValidForOneUnicodeFormOfAName() throws {
        let bench = try AdminBench()
        try bench.apps.admins.createUser(name: composed, role: .owner, password: AdminBench.passwordHash)
        #expect(try bench.signIn(composed).status == 200)
        #expect(try bench.signIn(decomposed).status != 200)
    }

    @Test func removingOneUserLeavesTheOther() throws {
        let bench = try AdminBench()
        let owner = try bench.visitor(.owner, composed)
        let other = try bench.visitor(.viewer, decomposed)
        try bench.apps.admins.deleteUser(decomposed)
        #expect(try bench.ask("GET", "session", nil, other.headers).status == 401)
        #expect(try bench.ask("GET", "session", nil, owner.headers).status == 200)
        #expect(try bench.apps.admins.users().map(\.name) == [composed])
    }
}
