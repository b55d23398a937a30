import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJSON
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import CountersignCLI

/// `tail` on a gateway in another process, and the codes that `trigger` provokes there.
@Suite(.timeLimit(.minutes(5)))
struct TailTests {
    private let folder = TemporaryFolder()
    private let data: String
    private let gateway: GatewayProcess
    private let shell: Shell
    private let said = RecordedText()

    init() throws {
        data = folder.path + "/data"
        try FolderTemplate.copy(.issuingKey, to: data)
        gateway = GatewayProcess(executable: Program.path, dataDirectory: data) { [said] line in
            said.append(line)
        }
        shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_DATA": data])
    }

    /// `tail`, the metrics and the analytics count the same rejections.
    @Test func eachTriggeredCodeIsInTailMetricsAndAnalytics() async throws {
        let url = try await gateway.start()
        // Creates the app in advance, so that the gateway knows it.
        #expect(try await shell.run("countersign trigger all --keep").status == 0)
        let before = try await counts(url)
        // A missing token needs no change of the app, so its request is sent once. Its code ends the loop below.
        let others = AuthErrorCode.all.filter { Provocation.all[$0] != nil && $0 != .missingToken }
        let wanted = (others + [.missingToken]).map { String($0.rawValue) }
        let result = try await shell.run(
            """
            mkfifo said seen
            countersign tail --json >seen 2>said & tail=$!
            exec 4<seen 3<said
            read -r line <&3
            for code in \(wanted.joined(separator: " ")); do countersign trigger $code --keep >/dev/null || exit 1; done
            while read -r line <&4; do
                echo "$line"
                case "$line" in *'"code":\(AuthErrorCode.missingToken.rawValue),'*) break ;; esac
            done
            kill -INT $tail
            wait $tail
            """)
        #expect(result.status == 130, "\(result.talk)")
        let seen = try result.output.split(separator: "\n").map { line in
            try StrictJSONParser(maximumBytes: 1 << 16).parse(bytes: Array(line.utf8)) { $0.value }
        }
        let rejected = seen.filter { $0["verdict"].text == "rejected" }.map { $0["code"].shown }
        // `trigger` repeats a request until it gets the wanted code, so a code may occur more than once.
        #expect(rejected.reduce(into: []) { if $0.last != $1 { $0.append($1) } } == wanted)
        let after = try await counts(url)
        for code in wanted {
            let times = rejected.filter { $0 == code }.count
            #expect(after.metrics[code, default: 0] - before.metrics[code, default: 0] == times, "\(code)")
            #expect(after.chart[code, default: 0] - before.chart[code, default: 0] == times, "\(code)")
        }
        // `tail` deletes the token that it created for itself.
        let admin = try LocalAdmin(dataDirectory: data)
        #expect(try await admin.items("tokens").allSatisfy { $0["name"].text != "tail" })
        #expect(await gateway.stop() == 0)
    }

    /// Returns rejected requests by code, from the metrics and from the analytics of the app.
    private func counts(_ url: URL) async throws -> (metrics: [String: Int], chart: [String: Int]) {
        let text = try await shell.run("curl -sS --max-time 60 \(url.absoluteString)/metrics").output
        var metrics: [String: Int] = [:]
        let line = #/countersign_auth_results_total\{.*result="rejected",reason="(\w+)"\} (\d+)/#
        for match in text.matches(of: line) {
            let code = try AuthErrorCode(word: String(match.output.1)).rawValue
            metrics[String(code), default: 0] += Int(match.output.2) ?? 0
        }
        var chart: [String: Int] = [:]
        let token = try AppDirectory(dataDirectory: data).apiTokens.create(name: "t", scopes: ["read"]).text
        let admin = try RemoteAdmin(.init(url: url.absoluteString), token: token)
        if case .object(let codes) = try await admin.get("apps", "trigger", "analytics").body["totals"][
            "codes"]
        {
            for (code, failures) in codes { chart[code] = Int(failures["rejected"].integer ?? 0) }
        }
        return (metrics, chart)
    }

    @Test func tailReconnectsAndContinuesAfterABrokenConnection() async throws {
        let url = try await gateway.start()
        let token = try AppDirectory(dataDirectory: data).apiTokens.create(name: "t", scopes: ["read"]).text
        let admin = try RemoteAdmin(.init(url: url.absoluteString), token: token)
        let io = RecordedIO()
        let pauses = Lock(0)
        let tail = Tail(
            .init(query: [("code", "22")], printsJSON: true), io: io.io,
            connect: { Tail.Connection(admin: admin) },
            pause: { [said] _ in
                pauses.withLock { $0 += 1 }
                try await said.wait { $0.components(separatedBy: "The gateway listens").count == 3 }
            })
        let running = Task { try await tail.run() }
        defer { running.cancel() }
        try await io.talkText.wait { $0.contains("Connected to") }
        #expect(try await shell.run("countersign trigger 22").status == 0)
        try await io.outputText.wait { !$0.isEmpty }
        let process = said.text.firstMatch(of: #/process (\d+)/#).flatMap { Int32($0.output.1) }
        #expect(kill(try #require(process), SIGKILL) == 0)
        try await io.talkText.wait { $0.components(separatedBy: "Connected to").count == 3 }
        let shown = io.output
        #expect(try await shell.run("countersign trigger 22").status == 0)
        // `tail` resumes after its last verdict, so it reports the missed ones.
        try await io.talkText.wait { $0.contains("Missed verdicts") }
        try await io.outputText.wait { $0 != shown }
        running.cancel()
        await #expect(throws: (any Error).self) { try await running.value }
        #expect(pauses.withLock { $0 } > 0)
        #expect(io.talk.components(separatedBy: "Connected to").count == 3, "\(io.talk)")
        _ = await gateway.stop()
    }

    @Test func earlierVerdictsAreShownFirstOnRequest() async throws {
        let url = try await gateway.start()
        let directory = try AppDirectory(dataDirectory: data)
        let writeKey = try directory.createApp(id: "before").writeKey
        let token = try directory.apiTokens.create(name: "t", scopes: ["write"]).text
        let admin = try RemoteAdmin(.init(url: url.absoluteString), token: token)
        for id in ["ada", "bob"] {
            let sent = try await shell.run(
                """
                curl -sS --retry 50 --retry-all-errors --retry-delay 0 --fail \(url.absoluteString)/v1/batch -H 'X-Write-Key: \(writeKey)' \\
                    -d '{"batch":[{"type":"track","event":"A","messageId":"\(id)","userId":"\(id)"}]}'
                """)
            #expect(sent.status == 0, "\(sent.talk)")
        }
        let io = RecordedIO()
        let tail = Tail(
            .init(query: [("app", "before")], earlier: .init(app: "before", count: 1)), io: io.io,
            connect: { Tail.Connection(admin: admin) })
        let running = Task { try await tail.run() }
        defer { running.cancel() }
        try await io.talkText.wait { $0.contains("Connected to") }
        #expect(io.output.contains(" not_judged ") && io.output.contains(" bob"), "\(io.output)")
        #expect(!io.output.contains(" ada"))
        #expect(io.talk.components(separatedBy: "VERDICT").count == 2, "\(io.talk)")
        running.cancel()
        await #expect(throws: (any Error).self) { try await running.value }
        _ = await gateway.stop()
    }

    /// Stored, sampled and live rows have the same members.
    @Test func everyRowHasTheSameMembers() async throws {
        let fixture = try GatewayFixture(enforcement: .optional)
        func send(_ id: String, _ token: String?) throws {
            var headers = ["X-Write-Key": fixture.writeKey, "Content-Type": "application/json"]
            headers["Authorization"] = token.map { "Bearer " + $0 }
            let body = #"{"batch":[{"type":"track","event":"A","messageId":"\#(id)","userId":"ada"}]}"#
            let answer = try fixture.client().send("POST", "/v1/batch", headers, Array(body.utf8))
            #expect(answer?.status == 200)
        }
        try send("good", try fixture.token(for: "ada"))
        try send("warned", try fixture.token(for: "ada", lifetime: -600))
        let token = try fixture.apps.apiTokens.create(name: "t", scopes: ["write"]).text
        let admin = try RemoteAdmin(.init(url: "http://127.0.0.1:\(fixture.gateway.port)"), token: token)
        for isJSON in [true, false] {
            let io = RecordedIO()
            let tail = Tail(
                .init(
                    query: [("app", "shop")], count: 1, printsJSON: isJSON,
                    earlier: .init(app: "shop", count: 20)),
                io: io.io, connect: { Tail.Connection(admin: admin) })
            let running = Task { try await tail.run() }
            defer { running.cancel() }
            try await io.talkText.wait { $0.contains("Connected to") }
            try send("live\(isJSON)", try fixture.token(for: "ada"))
            try await running.value
            let lines = io.output.split(separator: "\n")
            #expect(lines.count == (isJSON ? 3 : 4), "\(io.output)")
            guard isJSON else {
                #expect(lines.allSatisfy { $0.contains(" shop ") }, "\(io.output)")
                continue
            }
            let rows = lines.map { JSONValue(parsing: Array($0.utf8))?.members ?? [:] }
            #expect(Set(rows.map { $0.keys.sorted() }).count == 1, "\(io.output)")
            #expect(rows.allSatisfy { $0["app"] == "shop" && $0["user"] == "ada" })
            #expect(rows.map { $0["verdict"]?.text } == ["accepted", "warned", "accepted"])
            #expect(rows[1]["sample_id"]?.text?.isEmpty == false)
            #expect(rows[1]["endpoint"] == rows[2]["endpoint"])
        }
    }

    /// A gateway ends a live view when its token expires.
    @Test func theTokenOfTailLastsADayAndIsDeletedAtTheEnd() async throws {
        _ = try await gateway.start()
        let connection = try await TailCommand.connection(to: .folder(data))()
        let tokens = try AppDirectory(dataDirectory: data).apiTokens
        let token = try #require(tokens.all().first { $0.name == "tail" })
        let expiry = try #require(token.expiresMilliseconds)
        #expect(Double(expiry) / 1000 > Date().timeIntervalSince1970 + 23 * 3_600)
        await connection.close()
        #expect(try tokens.all().allSatisfy { $0.name != "tail" })
        _ = await gateway.stop()
    }

    @Test func theTokenOfTailDoesNotGoOverPlainHTTPToAnotherMachine() throws {
        let database = StorageLocation.database(try #require(DatabaseAddress("postgresql://db/countersign")))
        let remote = "http://gateway.example:8787"
        #expect(throws: CommandError.self) { try Tail.Connection.server(at: remote, of: database) }
        for url in ["https://gateway.example", "http://127.0.0.1:8787"] {
            #expect(try Tail.Connection.server(at: url, of: database).url == url)
        }
        _ = try Tail.Connection.server(at: remote, of: database, allowsPlainHTTP: true)
        _ = try Tail.Connection.server(at: remote, of: .folder(data))
    }

    @Test func tailWithoutAGatewayIsUnavailable() async {
        #expect(await RecordedIO().run("tail", "--data", data) == .unavailable)
        #expect(await RecordedIO().run("tail", "--data", data, "--code", "EXPIERD") == .usage)
    }
}
