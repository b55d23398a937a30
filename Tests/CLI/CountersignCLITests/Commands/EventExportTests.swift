import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import CountersignCLI

/// `event list` and `event export` while a gateway runs, over HTTP or on its data directory.
@Suite(.timeLimit(.minutes(5)))
struct EventExportTests {
    private let folder = TemporaryFolder()
    private let data: String
    private let gateway: GatewayProcess

    init() throws {
        data = folder.path + "/data"
        try FolderTemplate.copy(to: data)
        gateway = GatewayProcess(executable: Program.path, dataDirectory: data) { _ in }
    }

    private func shell(_ environment: [String: String]) -> Shell {
        Shell(folder: folder.path, environment: environment)
    }

    /// Starts a gateway with an app. Commands read it over HTTP if `isRemote`, or else from its data directory.
    private func shellOfAnApp(
        _ isRemote: Bool, set: (AppDirectory) throws -> Void = { _ in }
    ) async throws -> Shell {
        let directory = try AppDirectory(dataDirectory: data)
        let key = try directory.createApp(id: "shop").writeKey
        try set(directory)
        let token = try directory.apiTokens.create(name: "t", scopes: ["write"]).text
        let url = try await gateway.start().absoluteString
        let place =
            isRemote
            ? ["COUNTERSIGN_SERVER": url, "COUNTERSIGN_TOKEN": token] : ["COUNTERSIGN_DATA": data]
        return shell(place.merging(["COUNTERSIGN_WRITE_KEY": key, "COUNTERSIGN_URL": url]) { one, _ in one })
    }

    @Test(arguments: [false, true])
    func claimsAreListedAndFilterExports(_ isRemote: Bool) async throws {
        let key = try SigningKey.generate(.es256)
        let shell = try await shellOfAnApp(isRemote) { directory in
            _ = try directory.addKey(key.publicKey.pem, to: "shop")
            var policy = ClaimsPolicy(algorithms: [.es256])
            policy.keptClaims = ["anonymous_id", "plan"]
            try directory.setPolicy(policy, for: "shop")
            try directory.setEnforcement(.required, for: "shop")
        }
        var script = ""
        for plan in ["pro", "free"] {
            let token = try key.sign(claims: [
                "sub": "ada", "plan": .string(plan), "anonymous_id": "{",
                "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
            ])
            script += """
                curl -sSf -H "X-Write-Key: $COUNTERSIGN_WRITE_KEY" -H "Authorization: Bearer \(token)" \
                    "$COUNTERSIGN_URL/v1/batch" >/dev/null \
                    -d '{"batch":[{"type":"track","event":"\(plan)","messageId":"\(plan)","userId":"ada"}]}'

                """
        }
        let run = try await shell.run(
            script + "countersign event list shop --claim plan=pro\n"
                + "countersign event export shop --claim plan=free")
        #expect(run.status == 0, "\(run.talk)")
        #expect(run.output.contains("anonymous_id={ plan=pro") && !run.output.contains("plan=free"))
        #expect(
            run.output.hasSuffix(#"{"type":"track","event":"free","messageId":"free","userId":"ada"}"# + "\n")
        )
    }

    @Test(arguments: [false, true])
    func anExportContinuesAfterAPosition(_ isRemote: Bool) async throws {
        let shell = try await shellOfAnApp(isRemote)
        func send(_ names: String...) -> String {
            names.map {
                #"curl -sSf -H "X-Write-Key: $COUNTERSIGN_WRITE_KEY" "$COUNTERSIGN_URL/v1/batch" -d '{"batch":[{"type":"track","event":"\#($0)","messageId":"\#($0)","anonymousId":"d","properties":{"price": 1.10}}]}' >/dev/null"#
            }.joined(separator: "\n")
        }
        let first = try await shell.run(send("one", "two") + "\ncountersign event export shop --after start")
        #expect(first.status == 0, "\(first.talk)")
        let lines = first.output.split(separator: "\n").map(String.init)
        #expect(lines.count == 2)
        if !isRemote { #expect(lines.first?.contains(#""price": 1.10"#) == true) }
        let entry = try #require(JSONValue(parsing: Array((lines.last ?? "").utf8)))
        let position = try #require(entry["position"].text)
        #expect(first.talk.contains("2 events; --after \(position) continues"))
        #expect(entry["verdict"].text == "anonymous" && entry["received_ms"].integer != nil)
        let followed = try await shell.run(
            """
            mkfifo out
            countersign event export shop --after \(position) --follow >out & follow=$!
            exec 3<out
            \(send("three"))
            read -r line <&3
            echo "$line"
            kill -INT $follow
            wait $follow
            """)
        #expect(followed.status == 0, "\(followed.talk)")
        let third = try #require(JSONValue(parsing: Array(followed.output.utf8.dropLast())))
        #expect(third["name"].text == "three")
        #expect(followed.talk.contains("1 event; --after \(third["position"].text ?? "?") continues"))
        let garbage = try await shell.run("countersign event export shop --after nowhere")
        #expect(garbage.status != 0 && garbage.output.isEmpty && garbage.talk.contains("not a position"))
        #expect(await gateway.stop() == 0)
    }

    @Test(arguments: [false, true])
    func eventsDeletedByRetentionAreReported(_ isRemote: Bool) async throws {
        let shell = try await shellOfAnApp(isRemote)
        let sent = try await shell.run(
            #"""
            for name in one two three; do
              curl -sSf -H "X-Write-Key: $COUNTERSIGN_WRITE_KEY" "$COUNTERSIGN_URL/v1/batch" \
                -d '{"batch":[{"type":"track","event":"'$name'","messageId":"'$name'","anonymousId":"d"}]}' >/dev/null
            done
            countersign event export shop --after start
            """#)
        let lines = sent.output.split(separator: "\n").map { JSONValue(parsing: Array($0.utf8)) ?? .null }
        let position = try #require(lines.first?["position"].text, "\(sent.talk)")
        let sequences = lines.compactMap { $0["seq"].integer }
        try #require(sequences.count == 3)
        func deleteEvents(through sequence: Int64) throws {
            let events = try SQLiteConnection(path: data + "/events.sqlite")
            try events.run("DELETE FROM event WHERE seq <= ?1", .integer(sequence))
            try events.run("INSERT OR REPLACE INTO event_floor VALUES ('shop', ?1)", .integer(sequence))
        }
        try deleteEvents(through: sequences[1])
        let gap = try await shell.run("countersign event export shop --after \(position)")
        #expect(gap.status == 1)
        #expect(gap.talk.contains("Retention deleted events after \(position)"), "\(gap.talk)")
        let left = try #require(JSONValue(parsing: Array(gap.output.utf8.dropLast())))
        #expect(left["name"].text == "three" && left["events_missed"] == .bool(true))
        let next = try #require(left["position"].text)
        #expect(gap.talk.contains("1 event; --after \(next) continues"))
        let whole = try await shell.run("countersign event export shop --after \(next)")
        #expect(whole.status == 0 && whole.output.isEmpty && !whole.talk.contains("Retention"))
        // No event is left that could report the gap.
        try deleteEvents(through: sequences[2])
        let empty = try await shell.run("countersign event export shop --after \(position)")
        #expect(empty.status == 1 && empty.output.isEmpty && empty.talk.contains("Retention deleted"))
        #expect(empty.talk.contains("0 events; --after start continues"), "\(empty.talk)")
        #expect(await gateway.stop() == 0)
    }
}
