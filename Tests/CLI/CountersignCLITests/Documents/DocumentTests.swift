import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import Testing

@testable import CountersignCLI

/// Runs the samples and commands of the documents.
@Suite(.timeLimit(.minutes(5)))
struct DocumentTests {
    private let folder = TemporaryFolder()

    private let package = Package.folder

    private func document(_ name: String) throws -> String {
        try String(contentsOf: package.appendingPathComponent(name), encoding: .utf8)
    }

    /// The code blocks of a language, in order.
    private func blocks(_ language: String, of name: String) throws -> [String] {
        try document(name).components(separatedBy: "```\(language)\n").dropFirst().map {
            $0.components(separatedBy: "```\n")[0]
        }
    }

    private func pages() throws -> [String] {
        let folders = ["docs", "Benchmarks", "Clients", "Conformance", "Examples", "Sources"]
        let pages = try folders.flatMap { folder in
            try FileManager.default.subpathsOfDirectory(atPath: package.path + "/" + folder)
                .filter { $0.hasSuffix(".md") && !$0.contains(".build/") }.map { "\(folder)/\($0)" }
        }
        return pages + ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
    }

    @Test func theSwiftSampleOfTheReadmeIsTheSnippetThatIsBuilt() throws {
        let snippet = try document("Snippets/QuickStart.swift").components(separatedBy: "// snippet.")
        let shown = try #require(snippet.first { $0.hasPrefix("show\n") }).dropFirst("show\n".count)
        #expect(try blocks("swift", of: "README.md") == [String(shown)])
    }

    /// Each paragraph of a Swift sample appears, line for line, in a file that is built.
    @Test func everySwiftSampleOfTheArticlesIsBuilt() throws {
        let manager = FileManager.default
        func files(_ folder: String, _ suffix: String) throws -> [String] {
            try manager.subpathsOfDirectory(atPath: package.appendingPathComponent(folder).path)
                .filter { $0.hasSuffix(suffix) }.sorted().map { "\(folder)/\($0)" }
        }
        func lines(_ text: String) -> String {
            "\n"
                + text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
                .joined(separator: "\n") + "\n"
        }
        let built = try (files("Snippets", ".swift") + files("Tests", ".swift")).map {
            try lines(document($0))
        }
        let articles = try files("Sources", ".md").filter { $0.contains(".docc/") } + files("docs", ".md")
        #expect(articles.count > 10)
        for article in articles {
            for block in try blocks("swift", of: article) {
                for paragraph in block.components(separatedBy: "\n\n") {
                    let wanted = lines(paragraph)
                    #expect(built.contains { $0.contains(wanted) }, "\(article): \(paragraph)")
                }
            }
        }
    }

    @Test func theShellSamplesOfTheReadmeWorkWhenPasted() async throws {
        // Replaces the default port, which may be in use. This range is below the ephemeral ports.
        let port = Int.random(in: 20_000..<32_000)
        let samples = try blocks("sh", of: "README.md").filter { !$0.contains("make demo") }
        #expect(samples.count == 2)
        let script = samples.joined().replacingOccurrences(of: ":8787/", with: ":\(port)/")
            .replacingOccurrences(of: "make countersign\n", with: "")
        let shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_PORT": String(port)])
        let result = try await shell.run(
            """
            set -e
            trap 'kill $! 2>/dev/null || true' EXIT
            \(script)
            kill $!
            wait $!
            """)
        #expect(result.status == 0, "\(result.talk)")
        #expect(result.output.contains("\"accepted\":1"))
        #expect(result.output.contains(#/track +Order Completed +user-1 /#))
    }

    @Test func theCommandsForOperatorsWorkWhenPasted() async throws {
        let script = try blocks("sh", of: "docs/operating/configure.md").joined()
        let shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_DATA": folder.path + "/data"])
        let result = try await shell.run("set -e\n\(script)")
        #expect(result.status == 0, "\(result.talk)")
    }

    /// Pages with commands for an app `shop` with a key, `private.pem`, `WRITE_KEY`, `TOKEN` and a running gateway.
    @Test(arguments: [
        "docs/guides/identity-providers.md", "docs/guides/roll-out-enforcement.md",
        "docs/guides/rotate-keys.md", "docs/guides/sign-tokens.md", "docs/guides/web.md",
        "docs/operating/backup.md", "docs/operating/install.md", "docs/reference/admin-api.md",
        "docs/reference/error-codes.md", "docs/reference/http-api.md",
    ])
    func theCommandsOfEachGuideWorkWhenPasted(page: String) async throws {
        let data = folder.path + "/data"
        try FolderTemplate.copy(.issuingKey, to: data)
        let gateway = GatewayProcess(executable: Program.path, dataDirectory: data) { _ in }
        let port = try #require(try await gateway.start().port)
        let script = try blocks("sh", of: page).joined().replacingOccurrences(of: ":8787/", with: ":\(port)/")
        let shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_DATA": data])
        let addsTheKey = script.contains("key add shop public.pem")
        let key = try SharedKeys.app()
        _ = try folder.write(key.publicKey.pem, to: "public.pem")
        _ = try folder.write(key.privatePEM, to: "private.pem")
        let result = try await shell.run(
            """
            set -e
            WRITE_KEY="$(countersign app create shop)"
            TOKEN="$(countersign token create --key private.pem --user user-1)"
            \(addsTheKey ? "" : "countersign key add shop public.pem")
            \(script)
            """)
        _ = await gateway.stop()
        #expect(result.status == 0, "\(result.output)\n\(result.talk)")
        #expect(!script.isEmpty)
        if page == "docs/reference/http-api.md" {
            let answer = try #require(try blocks("json", of: page).first).dropLast()
            #expect(result.output.contains(answer))
        }
    }

    /// Also covers blocks that no test runs, such as those for Kubernetes.
    @Test func everyCommandInTheBlocksOfTheDocumentsParses() throws {
        let substitution = /\$\(([^)]*)\)/
        let command = /(?:'[^']*'|"[^"]*"|[^'"|;&<>)#])+/
        let word = /(?:'[^']*'|"[^"]*"|[^\s'"])+/
        let parser = CommandParser(commands: CommandTable.all, io: RecordedIO().io)
        var count = 0
        for page in try pages() {
            let parts = try document(page).components(separatedBy: "```")
            for block in parts.enumerated().filter({ $0.offset % 2 == 1 }).map(\.element) {
                let lines = block.replacing("\\\n", with: "").components(separatedBy: "\n")
                guard ["", "sh", "console"].contains(lines[0]) else { continue }
                let lists = lines.dropFirst().flatMap { line in
                    [line.replacing(substitution, with: "X")]
                        + line.matches(of: substitution).map { String($0.output.1) }
                }
                // Doubled spaces let the command follow a user or a container with the program's name.
                let texts = lists.flatMap {
                    " \($0)".replacing(" countersign", with: "  countersign")
                        .components(separatedBy: " countersign ").dropFirst()
                }
                for text in texts where text.first?.isLowercase == true {
                    let found = try #require(text.prefixMatch(of: command)).output.matches(of: word)
                    let words = found.map { String($0.output).replacing(/['"]/, with: "") }
                    count += 1
                    do throws(CommandError) {
                        guard case .run = try parser.parse(words) else {
                            Issue.record("\(page): \(words) is not a command")
                            continue
                        }
                    } catch {
                        Issue.record("\(page): \(words): \(error.reason)")
                    }
                }
            }
        }
        #expect(count > 80)
    }

    /// `serve` reads the file when it starts, and `config print` reads it in the same way.
    @Test func theConfigurationFileOfTheSettingsPageIsRead() async throws {
        let block = try #require(try blocks("json", of: "docs/reference/settings.md").first)
        let file = try folder.write(block, to: "gateway.json")
        let recorded = RecordedIO()
        #expect(await recorded.run("config", "print", "--config", file) == .done, "\(recorded.talk)")
    }

    @Test func theQuickStartOfConsumersWorksWhenPasted() async throws {
        let data = folder.path + "/data"
        let shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_DATA": data])
        #expect(try await shell.run("countersign app create shop > write.key").status == 0)
        let gateway = GatewayProcess(executable: Program.path, dataDirectory: data) { _ in }
        let port = try #require(try await gateway.start().port)
        let script = try blocks("sh", of: "docs/guides/read-events.md").joined()
            .replacingOccurrences(of: ":8787/", with: ":\(port)/")
        let result = try await shell.run(
            """
            set -e
            curl -sf http://127.0.0.1:\(port)/v1/batch -H "X-Write-Key: $(cat write.key)" \
                -d '{"batch":[{"type":"track","messageId":"m-1","anonymousId":"a-1","event":"Opened"}]}'
            \(script)
            cat batch.json
            countersign consumer show shop billing --json
            """)
        _ = await gateway.stop()
        #expect(result.status == 0, "\(result.output)\n\(result.talk)")
        #expect(result.output.contains(#""message_id":"m-1""#))
        #expect(result.output.contains(#""lag_events":0"#))
    }

    @Test func thePageOfErrorCodesHasTheTextsOfTheCodes() throws {
        let page = try document("docs/reference/error-codes.md")
        // Line breaks depend on the width of the page.
        func unwrapped(_ text: String) -> String {
            text.split { " \n".contains($0) }.joined(separator: " ")
        }
        let sections = page.components(separatedBy: "\n## ").dropFirst().map(unwrapped)
        for code in AuthErrorCode.all {
            let text =
                "\(code.rawValue) \(code.reason) \(code.summary) **Causes:** "
                + "\(code.likelyCauses.joined(separator: "; ")). **Fix:** \(code.fix) **Who:** "
            #expect(sections.filter { $0.hasPrefix(text) }.count == 1, "\(text)")
        }
        #expect(sections.filter { $0.first?.isNumber == true }.count == AuthErrorCode.all.count)
        let unprovoked = AuthErrorCode.all.filter { Provocation.all[$0] == nil }.map { "\($0.rawValue)" }
        #expect(
            unwrapped(page).contains(
                "No request provokes \(unprovoked.joined(separator: " and ")) for certain."))
    }

    @Test(arguments: [
        "packaging/grafana-dashboard.json", "packaging/prometheus/alerts.yml", "packaging/prometheus/slo.yml",
        "docs/operating/monitor.md", "docs/guides/roll-out-enforcement.md", "docs/reference/metrics.md",
    ])
    func alertsDashboardAndPagesNameOnlyDocumentedMetrics(file: String) throws {
        let rows = try document("docs/reference/metrics.md").matches(of: /\| `(countersign_[A-Za-z_]+)`/)
        let nouns = ["WAY", "consumer", "webhook", "stream", "sink", "files"]
        var documented = Set(
            rows.flatMap { row -> [String] in
                let name = String(row.1)
                return nouns.map { name.replacing("WAY", with: $0) }
            })
        // Consumers fetch events, so no delivery can fail.
        documented.remove("countersign_consumer_failing")
        #expect(documented.contains("countersign_files_lag_seconds"))
        let named = Set(
            try document(file).matches(of: /countersign_[A-Za-z_]+/).map { match in
                ["_bucket", "_sum", "_count"].reduce(String(match.0)) { name, suffix in
                    name.hasSuffix(suffix) ? String(name.dropLast(suffix.count)) : name
                }
            })
        #expect(!named.isEmpty)
        #expect(named.subtracting(documented).isEmpty)
    }

    @Test func everyLinkBetweenDocumentsLeadsToAFile() throws {
        for page in try pages() {
            let base = package.appendingPathComponent(page).deletingLastPathComponent()
            for match in try document(page).matches(of: /\]\((?!https?:|doc:|#)([^)#]+)/) {
                let target = base.appendingPathComponent(String(match.1)).standardizedFileURL.path
                #expect(FileManager.default.fileExists(atPath: target), "\(page): \(match.1)")
            }
        }
    }

    /// Each symptom is a text from the SDK, so that a search for the text finds the page.
    @Test func everySymptomInTheTroubleshootingPageIsInTheSDKSources() throws {
        let rows = try document("docs/guides/troubleshooting.md").split(separator: "\n").filter {
            $0.hasPrefix("| ")
        }
        let manager = FileManager.default
        let sources = try [
            "SDK/Countersign", "SDK/CountersignCore", "SDK/CountersignDelivery", "SDK/CountersignTransport",
        ].flatMap { target in
            try manager.subpathsOfDirectory(atPath: package.appendingPathComponent("Sources/\(target)").path)
                .filter { $0.hasSuffix(".swift") }.map { try document("Sources/\(target)/\($0)") }
        }.joined()
        var count = 0
        for row in rows {
            let symptom = row.split(separator: "|", maxSplits: 1)[0]
            for word in symptom.matches(of: /`([^`]+)`/) {
                count += 1
                let text = String(word.1)
                #expect(sources.contains(text.replacing("()", with: "(")), "\(text)")
            }
        }
        #expect(count > 25)
    }

    /// The rows of the table below a heading, without the table's header.
    private func table(_ heading: String, of page: String) throws -> [[String]] {
        let parts = try document("docs/reference/\(page).md").components(separatedBy: "\n## \(heading)\n")
        let section = try #require(parts.dropFirst().first)
        let lines = section.components(separatedBy: "\n").drop { !$0.hasPrefix("|") }
            .prefix { $0.hasPrefix("|") }
        return lines.dropFirst(2).map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    @Test func theTableOfExitCodesIsTheOneOfTheCode() throws {
        let expected = ExitCode.table.map { ["\($0.code.rawValue)", $0.meaning] }
        #expect(try table("Exit status", of: "cli") == expected)
    }

    @Test func theTableOfQuestionsNamesEveryCommandThatAsks() throws {
        let rows = try table("Questions", of: "cli")
        #expect(rows.count == 2)
        for (row, flag) in zip(rows, [Flag.confirm, .yes]) {
            // The page names the retention by its effect.
            let text = row[0].replacing("a retention", with: "`app retention`")
            let named = text.matches(of: /`([^`]+)`/).map { String($0.1) }
            let asking = CommandTable.all.filter { $0.flags.contains(flag) }.map(\.name)
            #expect(named.sorted() == asking.sorted())
            #expect(row[1].contains("`--\(flag.name)`"))
        }
    }

    @Test func theTableOfFailureNamesHasEachNameOfTheSDK() throws {
        let users = try document("Sources/SDK/Countersign/Authorization/UserTokenSource.swift")
        let names = users.matches(of: /(?:\.init\(|Explanation\(|failure\([a-zA-Z.]+, )"([a-z_]+)"/)
        let access = try document("Sources/SDK/CountersignLocations/AccessTokens/AccessTokens.swift")
        #expect(access.contains("\"malformed_access_token\""))
        let expected = Set(names.map { String($0.1) }).union(["malformed_access_token"])
        let rows = try table("Names that the SDK reports", of: "error-codes")
        #expect(rows.map { $0[0] }.sorted() == expected.map { "`\($0)`" }.sorted())
    }

    @Test func theReadmeIsShort() throws {
        #expect(
            try document("README.md").split(separator: "\n", omittingEmptySubsequences: false).count < 110)
    }
}
