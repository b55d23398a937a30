internal import CountersignCore
import CountersignCrypto
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayAdmin

/// The dashboard as a browser loads it. `make browser` tests its behaviour.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct DashboardTests {
    /// Paths of the assets that the page at `/admin/` loads.
    private func assets(_ page: String) -> [String] {
        page.split(separator: "\"").filter { $0.hasPrefix("/admin/assets/") }.map(String.init)
    }

    @Test func thePageHasItsStyleAndLoadsOneCacheableFile() throws {
        let bench = try AdminBench()
        let page = try bench.ask("GET", "/admin/")
        #expect(page.status == 200 && page.headers["cache-control"] == "no-cache")
        let policy = page.headers["content-security-policy"] ?? ""
        #expect(policy.contains("default-src 'none'"))
        let style = page.body.components(separatedBy: "<style>").last?.components(separatedBy: "</style>")[0]
        let digest = Data(SHA256.digest(style ?? "")).base64EncodedString()
        #expect(policy.contains("; style-src 'sha256-\(digest)';"))
        let assets = assets(page.body)
        #expect(assets.count == 1, "\(assets)")
        for path in assets {
            let plain = try bench.ask("GET", path)
            #expect(plain.status == 200 && plain.headers["content-encoding"] == nil)
            #expect(plain.headers["cache-control"] == "public, max-age=31536000, immutable")
            #expect(plain.headers["vary"] == "Accept-Encoding")
            let packed = try bench.ask("GET", path, nil, ["Accept-Encoding": "br, gzip"])
            #expect(packed.headers["content-encoding"] == "gzip")
            let rejected = try bench.ask("GET", path, nil, ["Accept-Encoding": "gzip;q=0.000"])
            #expect(rejected.headers["content-encoding"] == nil && rejected.body == plain.body)
            let tag = try #require(plain.headers["etag"])
            for known in [tag, String(tag.dropFirst(2)), "\"old\", \(tag)", "*"] {
                #expect(try bench.ask("GET", path, nil, ["If-None-Match": known]).status == 304, "\(known)")
            }
            #expect(try bench.ask("GET", path, nil, ["If-None-Match": "W/\"old\""]).status == 200)
            // A page loaded before an update requests a name that no longer exists.
            let stale = path.replacing("/app.", with: "/app.A")
            #expect(try bench.ask("GET", stale).status == 404)
        }
    }

    @Test func theBundleHasEveryModuleAfterItsImports() {
        let script = DashboardBundle.script()
        let lines = script.split(separator: "\n")
        #expect(!lines.contains { $0.hasPrefix("import {") || $0.hasPrefix("export ") })
        for path in DashboardBundle.files.keys where path.hasSuffix(".js") {
            let name = path.split(separator: "/").last ?? ""
            #expect(script.contains("modules[\"\(name)\"] = (() => {"), "nothing imports \(name)")
        }
        var defined: Set<Substring> = []
        for line in lines {
            for name in line.matches(of: #/modules\["([^"]+)"\]/#).map(\.output.1) {
                if line.hasPrefix("modules[\"") { defined.insert(name) }
                #expect(defined.contains(name), "\(line)")
            }
        }
        #expect(defined.count == DashboardBundle.files.keys.filter { $0.hasSuffix(".js") }.count)
    }

    @Test func modulesAreBundledWithTheirImportedNames() {
        let files: BytewiseDictionary = [
            "assets/modules/app.js": "import { one as first, Two } from \"./parts.js\";\nfirst(new Two());\n",
            "assets/modules/parts.js": """
            // Parts.
            export async function one(x) {
              // The same.
              return x;
            }
            /**
             * Two lines.
             */
            export class Two {}
            /** One line. */
            export const three = 3;

            """,
        ]
        #expect(
            DashboardBundle.script(files) == """
                "use strict";
                const modules = {};
                modules["parts.js"] = (() => {
                async function one(x) {
                  return x;
                }
                class Two {}
                const three = 3;

                return { one, Two, three };
                })();
                modules["app.js"] = (() => {
                const { one: first, Two } = modules["parts.js"];
                first(new Two());

                return {  };
                })();

                """)
    }

    @Test func theDocumentationIsServed() throws {
        let bench = try AdminBench()
        let page = try bench.ask("GET", "/admin/docs/guides,move-from,bloomreach.md")
        #expect(page.status == 200 && page.headers["content-type"] == "text/plain; charset=utf-8")
        #expect(page.body.hasPrefix("# "))
        #expect(try bench.ask("GET", "/admin/docs/guides,missing.md").status == 404)
        let embedded = DashboardBundle.files.keys.filter { $0.hasPrefix("docs/") }
        let script = DashboardBundle.script()
        for path in embedded {
            let name = path.dropFirst("docs/".count).dropLast(".md".count)
            #expect(script.contains("\(name)\": \"") || script.contains(" \(name): \""), "no link to \(path)")
        }
    }

    @Test func theRootRedirectsToTheDashboard() throws {
        let bench = try AdminBench()
        let root = try bench.ask("GET", "/")
        #expect(root.status == 302 && root.headers["location"] == "/admin/")
        #expect(try bench.ask("GET", "/favicon.ico").headers["content-type"] == "image/svg+xml")
    }

    @Test func withAnAdminListenerTheMainListenerHasNoDashboard() throws {
        let bench = try AdminBench(.live) {
            $0.adminHost = "127.0.0.1"
            $0.adminPort = 0
        }
        #expect(try bench.ask("GET", "/", nil, [:], by: bench.client()).status == 404)
        #expect(try bench.ask("GET", "/").status == 302)
    }
}
