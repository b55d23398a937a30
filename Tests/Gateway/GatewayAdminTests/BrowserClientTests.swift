import CountersignCrypto
import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

/// The client library for web pages, which the gateway serves.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct BrowserClientTests {
    private func get(_ client: any TestClient, _ path: String, origin: String? = nil) throws -> TestAnswer {
        try #require(client.send("GET", path, origin.map { ["Origin": $0] } ?? [:], nil))
    }

    @Test func thePermanentAddressServesThisVersion() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let client = try fixture.client()
        let present = try get(client, "/sdk/countersign.js")
        #expect(present.status == 200)
        #expect(present.headers["content-type"] == "text/javascript; charset=utf-8")
        #expect(present.headers["cache-control"] == "no-cache")
        #expect(present.body.contains("/v1/batch"))

        let description = try get(client, "/sdk/countersign.json").json
        let path = try #require(description["path"] as? String)
        let permanent = try get(client, path)
        #expect(permanent.body == present.body)
        #expect(permanent.headers["cache-control"] == "public, max-age=31536000, immutable")
        let digest = Data(SHA256.digest(Array(present.body.utf8))).base64EncodedString()
        #expect(description["integrity"] as? String == "sha256-\(digest)")
        let other = try get(client, "/sdk/countersign-AAAAAAAAAAAAAAAAAAAAAA.js")
        #expect(other.status == 404)
    }

    /// A proxy that compresses responses makes the tag weak.
    @Test func aCachedVersionIsNotSentAgain() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let client = try fixture.client()
        let tag = try #require(try get(client, "/sdk/countersign.js").headers["etag"])
        let fields = [(tag, 304), ("W/\(tag)", 304), ("\"old\", \(tag)", 304), ("*", 304), ("\"old\"", 200)]
        for (known, status) in fields {
            let answer = try #require(
                client.send("GET", "/sdk/countersign.js", ["If-None-Match": known], nil))
            #expect(answer.status == status, "\(known)")
        }
    }

    @Test func bothListenersServeTheBrowserClient() throws {
        let fixture = try GatewayFixture(.live, enforcement: .disabled) {
            $0.adminHost = "127.0.0.1"
            $0.adminPort = 0
        }
        #expect(try get(try fixture.client(), "/sdk/countersign.json").status == 200)
        let admin = try RawConnection(port: fixture.gateway.adminPort)
        #expect(try get(admin, "/sdk/countersign.json").status == 200)
    }

    @Test func onlyAllowedOriginsCanLoadTheBrowserClient() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let client = try fixture.client()
        func allowed() throws -> String? {
            try get(client, "/sdk/countersign.js", origin: "https://shop.example").headers[
                "access-control-allow-origin"]
        }
        #expect(try allowed() == nil)
        var rules = AppRules()
        rules.origins = ["https://shop.example"]
        try fixture.apps.setRules(rules, of: fixture.appID)
        try fixture.gateway.refreshApps()
        #expect(try allowed() == "https://shop.example")
    }
}
