import Countersign
import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayHTTP
import GatewayModel
import GatewayStorage
import Testing

@testable import CountersignCLI

/// The gateway, backend and page of `countersign dev`.
struct DevSessionTests {
    private let parent = TemporaryFolder()
    private var path: String { parent.path + "/dev" }

    /// Creates the folder as an earlier run would. Generating its key takes too long for a test.
    private func makeFolder() throws {
        guard !FileManager.default.fileExists(atPath: path) else { return }
        try FolderTemplate.copy(to: path)
        try SharedKeys.app().privatePEM.write(
            toFile: path + "/private.pem", atomically: true, encoding: .utf8)
    }

    private func start(_ seconds: Int = 60) async throws -> DevSession {
        try makeFolder()
        return try await DevSession(
            path: path, port: 0, backendPort: 0, tokenSeconds: seconds, logFormat: .json)
    }

    private func get(
        _ session: DevSession, _ path: String, _ query: String? = nil, host: String = "localhost:8000",
        origin: String = "http://localhost:3000"
    ) throws -> HTTPResponse {
        let request = HTTPRequest(
            method: "GET", path: path, query: query,
            fields: HeaderBlock([("Host", host), ("Origin", origin)]), receivedMilliseconds: 0)
        guard case .answer(let answer) = Router(session.backend.endpoints).route(request) else {
            throw CancellationError()
        }
        return answer
    }

    private func field(_ name: String, of answer: HTTPResponse) -> String? {
        answer.headers.first { $0.name == name }?.value
    }

    @Test func eventsWithTokensOfTheDevBackendAreStoredInEachRun() async throws {
        var writeKeys: [String] = []
        for run in 1...2 {
            let session = try await start(3_600)
            writeKeys.append(session.folder.writeKey)
            let answer = try get(session, "/token", "user=ada")
            let token = try #require(JSONValue(parsing: answer.body)?["token"].text)
            #expect(field("Access-Control-Allow-Origin", of: answer) == "http://localhost:3000")
            var configuration = CountersignConfiguration(
                endpoint: try #require(URL(string: session.gatewayURL)), writeKey: session.folder.writeKey)
            configuration.dataDirectory = URL(fileURLWithPath: parent.path + "/device")
            configuration.tokenProvider = { _ in token }
            let client = try CountersignClient(configuration: configuration)
            client.identify(userID: "ada")
            _ = try await client.record("Opened")
            #expect(await client.flush().isComplete)
            await client.close()
            let stored = try await session.folder.admin().items("apps", "dev", "events")
            #expect(stored.filter { $0["name"].text == "Opened" }.count == run)
            #expect(stored.allSatisfy { $0["verdict"].text == "verified" })
            session.stop()
        }
        #expect(Set(writeKeys).count == 1)
    }

    @Test func theFirstEventOfTheStartPageNeedsItsToken() async throws {
        let session = try await start()
        let page = try String(contentsOfFile: Package.folder.path + "/docs/start.md", encoding: .utf8)
        let block = page.components(separatedBy: "```console\n").last?.components(separatedBy: "```\n").first
        let script = try #require(block).replacing("$ ", with: "")
            .replacing("wk_…", with: session.folder.writeKey)
            .replacing("http://127.0.0.1:8000", with: session.backendURL)
            .replacing("http://127.0.0.1:8787", with: session.gatewayURL)
        let unsigned = script.replacing(#" -H "Authorization: Bearer $TOKEN""#, with: "")
        let output = try await Shell(folder: parent.path).run(script + unsigned).output
        #expect(output.contains(#""accepted":1"#))
        #expect(output.contains(#"{"success":false,"code":"MISSING_TOKEN","#))
        session.stop()
    }

    @Test func onlyTheDashboardLinkSignsIn() async throws {
        let session = try await start()
        let link = try #require(URL(string: session.dashboardURL)?.path)
        let answer = try get(session, link)
        #expect(answer.status == 303)
        #expect(field("Location", of: answer) == session.gatewayURL + "/admin/")
        let cookie = try #require(field("Set-Cookie", of: answer)?.split(separator: ";").first)
        let token = try #require(cookie.split(separator: "=").last)
        let admins = try AppDirectory(dataDirectory: path).admins
        #expect(try admins.signInSession(String(token), at: Milliseconds(Date()).count)?.user.role == .owner)
        for wrong in ["/dashboard", "/dashboard/", "/dashboard/x"] {
            #expect(try get(session, wrong).status == 404)
        }
        session.stop()
    }

    @Test func thePageOfDevHasTheGatewayAndIsAnAllowedOrigin() async throws {
        let session = try await start()
        let page = String(decoding: try get(session, "/").body, as: UTF8.self)
        #expect(page.contains(#"from "\#(session.gatewayURL)/sdk/countersign.js";"#))
        #expect(page.contains(session.folder.writeKey))
        let origins = try await session.folder.admin().get("apps", "dev").body["origins"].elements
        #expect(origins.contains(.string(session.backendURL)))
        session.stop()
    }

    @Test func originsOfEarlierRunsAreRemoved() async throws {
        try makeFolder()
        let folder = try await DevFolder(path: path)
        func origins() async throws -> [String] {
            try await folder.admin().get("apps", "dev").body["origins"].elements.compactMap(\.text)
        }
        let before = try await origins()
        let own = "http://localhost:3000"
        _ = try await folder.admin().patch(
            "apps", "dev", body: ["origins": .array((before + [own]).map { .string($0) })])
        try await folder.allow(["http://127.0.0.1:50001", "http://localhost:50001"])
        try await folder.allow([own, "http://127.0.0.1:50002"])
        #expect(try await origins() == before + [own, "http://127.0.0.1:50002"])
        // The developer's own origin stays, even if a run has used it.
        try await DevFolder(path: path).allow(["http://127.0.0.1:50003"])
        #expect(try await origins() == before + [own, "http://127.0.0.1:50003"])
    }

    @Test func originsOfAnInterruptedRunAreRemoved() async throws {
        try makeFolder()
        let folder = try await DevFolder(path: path)
        func origins() async throws -> [String] {
            try await folder.admin().get("apps", "dev").body["origins"].elements.compactMap(\.text)
        }
        let before = try await origins()
        // A directory in place of the record: the run stops before it changes the app.
        let record = path + "/origins.json"
        try FileManager.default.createDirectory(atPath: record, withIntermediateDirectories: false)
        await #expect(throws: (any Error).self) { try await folder.allow(["http://localhost:50001"]) }
        #expect(try await origins() == before)
        try FileManager.default.removeItem(atPath: record)
        // A run that stops after its record does not make the previous run's origins the developer's.
        try await folder.allow(["http://localhost:50001"])
        await #expect(throws: CommandError.self) { try await folder.allow(["not an origin"]) }
        try await folder.allow(["http://localhost:50002"])
        #expect(try await origins() == before + ["http://localhost:50002"])
    }

    @Test func requestsWithAnotherHostOrOriginAreRejected() async throws {
        let session = try await start()
        let foreign = try get(session, "/token", "user=ada", origin: "https://shop.example")
        #expect(field("Access-Control-Allow-Origin", of: foreign) == nil)
        for path in ["/", "/token", "/dashboard/" + session.backend.dashboardSecret] {
            for host in ["shop.example:8000", "", "localhost.shop.example"] {
                #expect(try get(session, path, "user=ada", host: host).code == "other_host")
            }
        }
        session.stop()
    }

    @Test func aFolderWithOtherFilesIsRejectedUnchanged() async throws {
        let file = try parent.write("mine", to: ".gitignore")
        _ = try parent.write("mine", to: "notes.txt")
        await #expect(throws: CommandError.self) { _ = try await DevFolder(path: parent.path) }
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "mine")
    }

    @Test func thePolicyFileIsAppliedOnlyAfterAChange() async throws {
        try makeFolder()
        let policy = DevPolicy(
            path: parent.path + "/policy.json", admin: try await DevFolder(path: path).admin())
        var last: String??
        #expect(await policy.applyIfChanged(&last)?.contains("cannot be read") == true)
        #expect(await policy.applyIfChanged(&last) == nil)
        _ = try parent.write(#"{"leeway_seconds":3}"#, to: "policy.json")
        #expect(await policy.applyIfChanged(&last)?.contains("applied: leeway_seconds") == true)
        #expect(await policy.applyIfChanged(&last) == nil)
    }

    @Test func aTokenRequestNeedsAUser() async throws {
        let session = try await start()
        #expect(try get(session, "/token").code == "missing_user")
        #expect(try get(session, "/token", "user=").status == 400)
        session.stop()
    }

    @Test func thePolicyFileIsAppliedUnlessItIsInvalid() async throws {
        try makeFolder()
        let kept = try await DevFolder(path: path)
        let admin = try kept.admin()
        let policy = DevPolicy(path: "policy.json", admin: admin)
        #expect(
            await policy.apply(#"{"enforcement":"optional","leeway_seconds":7}"#)
                == "policy.json applied: enforcement, leeway_seconds.")
        for (text, part) in [
            (nil, "cannot be read"), ("{", "not a JSON object"), (#"{"leeway_seconds":-1}"#, "is invalid"),
            (#"{"enforcement":"strict"}"#, "is invalid"), (#"{"lee_way":1}"#, "is invalid"),
        ] {
            #expect(await policy.apply(text).contains(part), "\(text ?? "nil")")
        }
        #expect(try await admin.get("apps", "dev", "policy").body["leeway_seconds"] == .number(7))
        #expect(try await admin.get("apps", "dev").body["enforcement"] == "optional")
    }

    @Test func keyFilesHaveMode600AndAreIgnoredByGit() async throws {
        let kept = try await DevFolder(path: path)
        for name in ["private.pem", "write-key"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: kept.path + "/" + name)
            #expect((attributes[.posixPermissions] as? Int) == 0o600)
        }
        #expect(try String(contentsOfFile: kept.path + "/.gitignore", encoding: .utf8) == "*\n")
        // `token verify` reads this file.
        let publicKey = try PublicKey(
            pem: String(contentsOfFile: kept.path + "/public.pem", encoding: .utf8), algorithm: .rs256)
        #expect(publicKey.thumbprint == kept.key.publicKey.thumbprint)
    }
}
