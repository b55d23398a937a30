import CountersignGatewayTesting
import CountersignTesting
import Foundation
import Testing

@testable import GatewayModel

/// The documentation's site, served by the gateway.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct DocumentationTests {
    /// A site, with a secret beside it and links to that.
    private final class Site: Sendable {
        private let root = TemporaryFolder()
        var folder: String { root.path }
        var path: String { folder + "/site" }

        init() throws {
            let page =
                "<html><script>var baseUrl = \"/docs/\"</script><script src=\"site.js\"></script></html>"
            for (path, text) in [
                ("site/index.html", "<html>start</html>"), ("site/site.js", "let a;"),
                ("site/site.css", "a {}"),
                ("site/api/A/index.html", page), ("site/api/A/data/init(_:).json", "{}"),
                ("site/api/A/icon.svg", "<svg/>"), ("site/api/A/odd.thing", "?"), ("site/.hidden", "secret"),
                ("secret.txt", "secret"),
            ] {
                let file = root.url.appendingPathComponent(path)
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(text.utf8).write(to: file)
            }
            let files = FileManager.default
            try files.createSymbolicLink(
                atPath: folder + "/site/link.txt", withDestinationPath: folder + "/secret.txt")
            try files.createSymbolicLink(atPath: folder + "/site/out", withDestinationPath: folder)
        }
    }

    private func fixture(_ folder: String?) throws -> GatewayFixture {
        try GatewayFixture(.standard) { $0.docsFolder = folder }
    }

    @Test(arguments: [
        ("/docs/", "text/html; charset=utf-8", "<html>start</html>"),
        ("/docs/index.html", "text/html; charset=utf-8", "<html>start</html>"),
        ("/docs/site.js", "text/javascript; charset=utf-8", "let a;"),
        ("/docs/site.css?v=1", "text/css; charset=utf-8", "a {}"),
        ("/docs/api/A/data/init(_:).json", "application/json", "{}"),
        ("/docs/api/A/data/init%28_%3A%29.json", "application/json", "{}"),
        ("/docs/api/A/icon.svg", "image/svg+xml", "<svg/>"),
        ("/docs/api/A/odd.thing", "application/octet-stream", "?"),
    ])
    func aFileIsServedAsWhatItIs(path: String, type: String, body: String) throws {
        let site = try Site()
        let fixture = try fixture(site.path)
        let answer = try fixture.client().get(path)
        #expect(answer?.status == 200)
        #expect(answer?.headers["content-type"] == type)
        #expect(answer?.headers["x-content-type-options"] == "nosniff")
        #expect(answer?.body == body)
        let head = try fixture.client().send("HEAD", path, [:], nil)
        #expect(head?.status == 200)
        #expect(head?.body == "")
        let tag = try #require(answer?.headers["etag"])
        let again = try fixture.client().get(path, headers: ["If-None-Match": tag])
        #expect(again?.status == 304)
        #expect(again?.body == "")
    }

    @Test(arguments: [
        "/docs/../secret.txt", "/docs/%2e%2e/secret.txt", "/docs/..%2fsecret.txt",
        "/docs/%2e%2e%2fsecret.txt",
        "/docs/api/../../secret.txt", "/docs/..%5csecret.txt", "/docs/%252e%252e/secret.txt",
        "/docs//etc/passwd", "/docs/%2fetc/passwd", "/docs/link.txt", "/docs/out/secret.txt", "/docs/.hidden",
        "/docs/api/A/data/", "/docs/api/", "/docs/api", "/docs/none", "/docs/%ff", "/docs/site.js/",
    ])
    func nothingElseIsServed(path: String) throws {
        let site = try Site()
        let answer = try fixture(site.path).client().get(path)
        #expect(answer?.status == 404)
        #expect(answer?.body.contains("secret") == false)
    }

    @Test(arguments: [("/docs", "/docs/"), ("/docs/api/A", "/docs/api/A/")])
    func aFolderIsServedWithASlash(path: String, target: String) throws {
        let site = try Site()
        let answer = try fixture(site.path).client().get(path)
        #expect(answer?.status == 308)
        #expect(answer?.headers["location"] == target)
    }

    @Test func aPageRunsItsOwnScriptsOnly() throws {
        let site = try Site()
        let answer = try fixture(site.path).client().get("/docs/api/A/")
        let policy = try #require(answer?.headers["content-security-policy"])
        // printf 'var baseUrl = "/docs/"' | openssl dgst -sha256 -binary | base64
        let digest = "'sha256-77EWPyjUT2bZILT2rauaG3kt/w83/XPAfBGN/zpoqgs='"
        #expect(policy.contains("script-src 'self' \(digest); "))
        let script = policy.split(separator: ";").first { $0.contains("script-src") }
        #expect(script?.contains("unsafe") == false)
    }

    @Test func withoutTheSettingThereIsNone() throws {
        let site = try Site()
        for folder in [site.path, nil] {
            let fixture = try fixture(folder)
            #expect(try fixture.client().get("/docs/")?.status == (folder == nil ? 404 : 200))
            let bench = try AdminBench { $0.docsFolder = folder }
            let overview = try bench.ask("GET", "overview", nil, bench.token("read")).json
            #expect(overview["documentation"] as? Bool == (folder != nil))
        }
    }

    @Test func aFolderThatIsNoSiteIsRefused() throws {
        let site = try Site()
        do {
            _ = try fixture(site.folder)
            Issue.record("it was taken")
        } catch let error as GatewayError {
            #expect(error.code == .invalid)
            #expect(error.reason.contains("make docs"))
        }
    }
}
