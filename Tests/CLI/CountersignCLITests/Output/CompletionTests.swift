import CountersignCore
import Foundation
import GatewayStorage
import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(5)))
struct CompletionTests {
    /// Incomplete command lines and the completions of the last word. `{webhook}` is a webhook's id.
    private static let lines = [
        ("enf", "enforcement"), ("admin user set-r", "set-role"), ("tail --cod", "--code"),
        ("completion z", "zsh"), ("help admin user set-r", "set-role"), ("-o jsonl app sh", "show"),
        ("enforcement set shop req", "required"), ("event list shop --verdict unv", "unverified"),
        ("event export shop --format cs", "csv"), ("app list -o tab", "table"),
        ("trigger EXPIRE", "EXPIRED"),
        ("serve --log-level deb", "debug"), ("tail --code NOT_Y", "NOT_YET_VALID"), ("app show sh", "shop"),
        ("tail --app sh", "shop"), ("consumer show shop bil", "billing"),
        ("webhook show shop {webh", "{webhook}"),
        ("customer show shop ali", "alice"), ("event list shop --since 2h --user ali", "alice"),
        ("user allow shop mall", "mallory"),
        ("key add shop publ", "public.pem"), ("send --key publ", "public.pem"),
    ]

    private let folder = TemporaryFolder()
    private let webhook: String

    init() async throws {
        let data = folder.path + "/data"
        _ = try AppDirectory(dataDirectory: data).createApp(id: "shop")
        try storeEvent(of: "alice", in: data)
        for user in ["alix;id", "--alix", "alix\tx"] { try storeEvent(of: user, in: data) }
        _ = try folder.write("", to: "public.pem")
        let io = RecordedIO(environment: ["COUNTERSIGN_DATA": data])
        // This user has sent no event.
        #expect(await io.run("user", "block", "shop", "mallory") == .done, "\(io.talk)")
        #expect(await io.run("consumer", "create", "shop", "billing") == .done, "\(io.talk)")
        #expect(await io.run("webhook", "create", "shop", "https://hook.example") == .done, "\(io.talk)")
        webhook = String(io.output.split(separator: "\n")[1])
    }

    private var shell: Shell {
        Shell(
            folder: folder.path,
            environment: [
                "COUNTERSIGN_DATA": folder.path + "/data", "HOME": folder.path, "INPUTRC": "/dev/null",
                "PS1": "ready> ", "TERM": "dumb",
            ])
    }

    /// `Self.lines` with the webhook's id in place of `{webhook}`.
    private var lines: [(String, String)] {
        Self.lines.map { line, word in
            (line.replacing("{webh", with: webhook.dropLast(4)), word.replacing("{webhook}", with: webhook))
        }
    }

    /// Bash inserts a word without quoting it, and a client chooses the ids of its users.
    @Test func completionOmitsIDsThatAShellCouldExecute() async {
        let io = RecordedIO(environment: ["COUNTERSIGN_DATA": folder.path + "/data"])
        #expect(await io.run("complete", "--", "customer", "show", "shop", "") == .done, "\(io.talk)")
        let words = io.output.split(separator: "\n")
        #expect(words.contains("alice") && !words.contains { $0.contains("alix") }, "\(words)")
    }

    private static func isInstalled(_ program: String) -> Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(program)")
        }
    }

    private func check(_ start: String, setUp: String) async throws {
        let program = try shell.onTerminal("exec " + start)
        try await program.screen.wait { $0.contains("ready> ") }
        try await program.type("\(setUp); echo loa''ded\n", waitFor: "loaded")
        for (line, word) in lines {
            let whole = "countersign \(line.split(separator: " ").dropLast().joined(separator: " ")) \(word)"
                .replacing("  ", with: " ")
            try await program.type("countersign \(line)\t", waitFor: whole)
            // Deletes the line.
            program.type("\u{15}")
        }
    }

    @Test(.enabled(if: isInstalled("bash"), "bash is not installed"))
    func bashCompletesValuesAndIDs() async throws {
        let file = try folder.write(CompletionScript.bash, to: "completion")
        try await check("bash --norc --noprofile -i", setUp: "source '\(file)'")
    }

    @Test(.enabled(if: isInstalled("zsh"), "zsh is not installed"))
    func zshCompletesValuesAndIDs() async throws {
        let file = try folder.write(CompletionScript.zsh, to: "completion")
        try await check("zsh -f -i", setUp: "autoload -Uz compinit; compinit -u -D; source '\(file)'")
    }

    @Test(.enabled(if: isInstalled("fish"), "fish is not installed"))
    func fishCompletesValuesAndIDs() async throws {
        let file = try folder.write(CompletionScript.fish, to: "completion")
        for (line, word) in lines {
            let result = try await shell.run("fish -c 'source \(file); complete -C \"countersign \(line)\"'")
            #expect(
                result.output.split(separator: "\n").contains { $0.split(separator: "\t")[0] == word },
                "\(line): \(result)")
        }
    }

    /// bash passes `=` as a word of its own.
    @Test(arguments: [
        ["app", "show", "--data", "DATA", ""], ["--data=DATA", "app", "show", ""],
        ["tail", "--data", "DATA", "--app", "=", "sh"], ["tail", "--data", "=", "DATA", "--app", "="],
    ])
    func completionReadsIDsFromTheDataDirectoryOfTheLine(line: [String]) async {
        let io = RecordedIO()
        let words = line.map { $0.replacing("DATA", with: folder.path + "/data") }
        #expect(await io.run(arguments: ["complete", "--"] + words) == .done, "\(io.talk)")
        #expect(io.output == "shop\n")
    }

    @Test(.enabled(if: isInstalled("groff"), "groff is not installed"))
    func manualPagesHaveNoWarnings() async throws {
        _ = try folder.write(ManPage.program(CommandTable.all, version: "1"), to: "countersign.1")
        for command in CommandTable.all {
            let name = "countersign-\(command.path.joined(separator: "-")).1"
            _ = try folder.write(ManPage.command(command, version: "1"), to: name)
        }
        let result = try await shell.run("groff -man -ww -Tutf8 *.1 >/dev/null")
        #expect(result.status == 0 && result.talk.isEmpty, "\(result.talk)")
    }
}
