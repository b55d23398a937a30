import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import CountersignJSON
import Foundation
import Testing

@testable import CountersignCLI

/// Runs each command on a data directory and on a running gateway with equal data, and compares the output.
@Suite(.timeLimit(.minutes(5)))
struct LocalAndRemoteOutputTests {
    /// A data directory or a running gateway.
    private struct CommandTarget {
        let name: String
        let fixture: GatewayFixture
        var arguments: [String] = []
        var environment: [String: String] = [:]
        var last = ""
        var lastObject = ""

        /// Text that differs between targets: addresses, and on PostgreSQL the position of the one event.
        func names() throws -> [String] {
            let address = fixture.place.configuration.database?.description
            let events = address == nil ? [] : try fixture.place.events(["position"]).compactMap(\.[0])
            return [address, fixture.dataDirectory, "http://127.0.0.1:\(fixture.gateway.port)"].compactMap(
                \.self)
                + events
        }
    }

    private let folder = TemporaryFolder()

    init() throws {
        let keys = [try SharedKeys.app(), try SigningKey.generate(.es256)]
        _ = try folder.write(keys[0].publicKey.pem, to: "public.pem")
        _ = try folder.write(JWKSet(keys: [keys[1].publicKey]).json, to: "jwks.json")
        _ = try folder.write(try SigningKey.generate(.es256).publicKey.pem, to: "third.pem")
        _ = try folder.write(#"{"id":"newsletter"}"#, to: "consent.json")
        _ = try folder.write("correct horse battery\n", to: "password.txt")
        _ = try folder.write(
            #"{"event":"One","userId":"u","messageId":"m-1","properties":{"price":1.5}}"#, to: "events.ndjson"
        )
    }

    /// Command lines. `{last}` is the output of the previous line, `{id}` the id in the last object.
    private let lines = [
        "profile show --json", "profile show", "app create blog --name Blog", "app list", "app list --json",
        "app origins blog https://a.example", "app retention blog --days 5 --json",
        "app tokens blog --registration open --json", "app tokens blog", "app show blog",
        "app show blog --json",
        "write-key create blog --description two --json", "write-key list blog",
        "write-key delete blog {id} --yes",
        "write-key list blog --json", "key add blog FOLDER/public.pem --description first",
        "key add blog FOLDER/jwks.json",
        "key primary blog {last}", "key list blog --json", "key list blog", "key jwks blog",
        "key add blog FOLDER/third.pem",
        "key delete blog {last}",
        "key follow blog https://127.0.0.1:1/jwks.json --allow-private", "key unfollow blog",
        "enforcement set blog optional", "enforcement show blog --json", "enforcement show blog",
        "enforcement preview blog --json", "enforcement preview blog",
        "policy set blog --algorithms RS256,ES256 --leeway 5 --audience shop", "policy show blog --json",
        "policy show blog", "project set blog --token t-1 --customer-tokens allowed",
        "project put blog consent-category FOLDER/consent.json", "project show blog --json",
        "project show blog", "project remove blog consent-category newsletter", "project key add blog k1",
        "project key delete blog k1", "client create blog --name warehouse --json", "client list blog",
        "client delete blog {client_id}", "client list blog --json", "session create blog --user u --json",
        "session list blog", "session list blog --json", "session revoke blog {id}",
        "session revoke blog --user u", "signing-key rotate --json", "signing-key list --json",
        "token verify FOLDER/token.txt --app shop --user u --json",
        "token verify FOLDER/token.txt --app shop",
        "user block shop u --for 1h --reason test", "user limit shop d --device --rate 10",
        "user revoke shop u", "user list shop", "user allow shop u",
        "event list shop", "sample list shop", "sample list shop --json", "event export shop",
        "event list shop --json --limit 1", "event show shop {position}",
        "event export shop --format csv", "customer show shop u",
        "customer show shop u --json", "customer delete shop u --yes --json",
        "admin token create --name x --json", "admin token list", "admin token delete {id}",
        "admin token list --json", "admin user create lee --role owner --password-file FOLDER/password.txt",
        "admin user create kim --password-file FOLDER/password.txt --json",
        "admin user set-role kim operator", "admin user set-password kim --password-file FOLDER/password.txt",
        "admin user list", "admin second-factor", "admin second-factor required",
        "admin second-factor optional --json", "admin user reset-second-factor kim", "admin user delete kim",
        "admin user list --json", "backup create",
        "backup verify {last}", "backup list", "audit list --limit 500",
        "audit list --json --limit 500 --app blog", "audit verify --json",
        "consumer create shop billing --partitions 2 --json", "consumer list shop",
        "consumer show shop billing",
        "consumer show shop billing --json", "consumer seek shop billing --from end",
        "consumer delete shop billing",
        "webhook create shop https://127.0.0.1:1/in --allow-private --json", "webhook list shop",
        "webhook show shop {id}", "webhook update shop {id} --batch-size 5", "webhook pause shop {id}",
        "webhook resume shop {id}", "webhook rotate shop {id} --hours 1", "webhook deliveries shop {id}",
        "webhook replay shop {id} --from-seq 1 --to-seq 1", "webhook test shop {id}",
        "webhook delete shop {id}", "webhook alerts set shop https://shop.example/alerts --json",
        "webhook alerts show shop", "webhook alerts show shop --json", "webhook alerts delete shop",
        "stream create shop out nats://127.0.0.1:1 E", "stream pause shop out",
        "stream seek shop out --from start",
        "stream list shop", "stream show shop out", "stream resume shop out", "stream delete shop out",
        "files pause shop", "files show shop", "files resume shop", "files show shop --json",
        "app delete blog --confirm blog --json", "app list",
    ]

    @Test func commandsPrintTheSameOverHTTPAsOnADataDirectory() async throws {
        let fixtures = [try GatewayFixture(), try GatewayFixture()]
        var targets: [CommandTarget] = []
        for fixture in fixtures {
            // Both targets get a token, so that their audit logs have the same entries.
            let token = try fixture.apps.apiTokens.create(name: "test", scopes: ["admin"]).text
            let url = "http://127.0.0.1:\(fixture.gateway.port)"
            let send = RecordedIO(environment: [
                "COUNTERSIGN_WRITE_KEY": fixture.writeKey, "HOME": folder.path,
            ])
            let signed = try folder.write(try fixture.token(for: "u"), to: "token.txt")
            #expect(
                await send.run(
                    "send", folder.path + "/events.ndjson", "--server", url, "--user-token-file",
                    signed) == .done,
                "\(send.talk)")
            // Analytics are otherwise flushed once a second.
            fixture.gateway.analytics.flush()
            let environment = ["COUNTERSIGN_TOKEN": token]
            #expect(
                await RecordedIO(environment: environment).run("profile", "show", "--server", url) == .done)
            targets.append(
                targets.isEmpty
                    ? CommandTarget(name: "local", fixture: fixture, environment: fixture.place.environment)
                    : CommandTarget(
                        name: "remote", fixture: fixture, arguments: ["--server", url],
                        environment: environment))
        }
        // PostgreSQL is backed up with its own tools.
        let isDatabase = TestEngine.standard != .sqlite
        for line in lines where !(isDatabase && line.hasPrefix("backup ")) {
            var printed: [String] = []
            for index in targets.indices {
                let words = line.split(separator: " ").map { filled(String($0), targets[index]) }
                let io = RecordedIO(environment: targets[index].environment)
                let code = await io.run(arguments: words + targets[index].arguments)
                #expect(code == .done, "\(targets[index].name): \(line): \(io.talk)")
                targets[index].last = io.output.trimmingCharacters(in: .whitespacesAndNewlines)
                if io.output.hasPrefix("{") { targets[index].lastObject = targets[index].last }
                printed.append(try plain(io.output, of: targets[index]))
            }
            #expect(printed[0] == printed[1], "\(line)")
        }
    }

    @Test func everyCommandWithServerAndDataIsCompared() {
        let wanted = CommandTable.all.filter { $0.flags.contains(.server) && $0.flags.contains(.data) }
        // Tested elsewhere: `tail` and `listen` do not end by themselves, `trigger` and `dashboard` need a running
        // gateway, `doctor` makes other checks, and `cluster status` needs a database.
        for command in wanted
        where !["cluster status", "dashboard", "doctor", "listen", "tail", "trigger"].contains(command.name) {
            #expect(
                lines.contains { ($0 + " ").hasPrefix(command.name + " ") }, "\(command.name) is in no line")
        }
        #expect(wanted.count > 40)
    }

    private func filled(_ word: String, _ target: CommandTarget) -> String {
        if word == "{last}" { return target.last }
        if word.hasPrefix("{") {
            let object = Array(target.lastObject.utf8)
            let value = try? StrictJSONParser(maximumBytes: 1 << 16).parse(bytes: object) {
                $0.value[String(word.dropFirst().dropLast())].text
            }
            return (value ?? nil) ?? word
        }
        return word.replacing("FOLDER", with: folder.path)
    }

    /// Replaces random values, times and the name of the actor in `text`.
    private func plain(_ text: String, of target: CommandTarget) throws -> String {
        // Reads are audited only on a server.
        let read = #/(?m)^.* (event\.export|customer\.show|audit\.export) .*\n/#
        return try target.names().reduce(text.replacing(read, with: "")) { $0.replacing($1, with: "TARGET") }
            .replacing(#/cli:\w+ *|token:test(#[\w-]+)? */#, with: "ACTOR ")
            .replacing(#/\d{4}-\d\d-\d\dT[\d:.]+Z/#, with: "TIME").replacing(#/\b\d{13}\b/#, with: "MS")
            .replacing(#/countersign-\d{8}T\w+/#, with: "BACKUP")
            // Only a running gateway knows whether a write key was used.
            .replacing(#/\bnever\b|unknown here/#, with: "UNUSED")
            .replacing(#/"entries":\d+/#, with: "N")
            .replacing(#/\bwk_[A-Za-z0-9_\-]{4}(?![A-Za-z0-9_\-])/#, with: "PREFIX")
            // A gateway attempts to reach a new stream at once, before or after this output.
            .replacing(#/(?m)^(POSITION|LAST|ERROR|REASON|FAILURES|FAILING|NEXT ATTEMPT)\b.*\n/#, with: "")
            // A gateway reads events for a new webhook at once, before or after this output.
            .replacing(#/COMMITTED +\d+/#, with: "COMMITTED").replacing(
                #/ active +[-\d]+/#, with: " active LAG"
            )
            .replacing(#/\bu-[a-z2-7]{8}\b/#, with: "PSEUDONYM")
            .replacing(#/[A-Za-z0-9_\-+\/=]{12,}/#) { match in
                // Matches without digits and capitals are words. The others are ids, hashes and secrets.
                match.output.contains(where: \.isNumber) || match.output.contains(where: \.isUppercase)
                    ? "ID" : String(match.output)
            }.replacing(#/ +/#, with: " ").replacing(#/"bytes":\d+| \d+ TIME/#, with: "N")
    }
}
