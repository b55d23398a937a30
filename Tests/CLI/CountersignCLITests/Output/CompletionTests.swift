import Foundation
import GatewayStorage
import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(5)))
struct CompletionTests {
    @Test(.enabled(if: isInstalled("bash"), "bash is not installed"))
    func bashReadsItsScript() async throws {
        try await check(CompletionScript.bash(CommandTable.all), "bash -n")
    }

    @Test(.enabled(if: isInstalled("zsh"), "zsh is not installed"))
    func zshReadsItsScript() async throws {
        try await check(CompletionScript.zsh(CommandTable.all), "zsh -n")
    }

    @Test(.enabled(if: isInstalled("fish"), "fish is not installed"))
    func fishReadsItsScript() async throws {
        try await check(CompletionScript.fish(CommandTable.all), "fish --no-execute")
    }

    /// fish completes without a terminal, so its answer can be looked at.
    @Test(.enabled(if: isInstalled("fish"), "fish is not installed"))
    func fishCompletesCommandsAndFlags() async throws {
        let folder = TemporaryFolder()
        let file = try folder.write(CompletionScript.fish(CommandTable.all), to: "completion")
        for (line, expected) in [
            ("countersign enf", "enforcement"), ("countersign admin user s", "set-role"),
            ("countersign tail --c", "--code"), ("countersign completion z", "zsh"),
        ] {
            let shell = Shell(folder: folder.path, environment: ["HOME": folder.path])
            let result = try await shell.run("fish -c 'source \(file); complete -C \"\(line)\"'")
            #expect(
                result.output.split(separator: "\n").contains { $0.hasPrefix(expected) },
                "\(line): \(result.output) \(result.talk)")
        }
    }

    private static func isInstalled(_ program: String) -> Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(program)")
        }
    }

    private func check(_ script: String, _ check: String) async throws {
        let folder = TemporaryFolder()
        let file = try folder.write(script, to: "completion")
        let result = try await Shell(folder: folder.path).run("\(check) '\(file)'")
        #expect(result.status == 0 && result.talk.isEmpty, "\(result.talk)")
    }

    @Test func bashCompletesCommandsFlagsAndChoices() async throws {
        let folder = TemporaryFolder()
        let file = try folder.write(CompletionScript.bash(CommandTable.all), to: "completion")
        let shell = Shell(folder: folder.path)
        for (words, expected) in [
            (["countersign", "enf"], "enforcement"), (["countersign", "enforcement", "s"], "set"),
            (["countersign", "serve", "--log-level", "deb"], "debug"),
            (["countersign", "completion", "z"], "zsh"),
        ] {
            let line = words.map { "'\($0)'" }.joined(separator: " ")
            let result = try await shell.run(
                "exec bash -c 'source \"$0\"; shift 0; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _countersign; printf \"%s\\n\" \"${COMPREPLY[@]}\"' '\(file)' \(line)"
            )
            #expect(
                result.output.split(separator: "\n").map(String.init).contains(expected),
                "\(words): \(result)")
        }
    }

    /// The app is the word before a user's id, or the command's first where a flag names the user.
    @Test(arguments: [
        ["customer", "show", "shop", "us"], ["event", "list", "shop", "--user", "us"],
        ["event", "export", "shop", "--since", "2h", "--user", "us"],
    ])
    func bashCompletesUsersOfAnApp(words: [String]) async throws {
        let folder = TemporaryFolder()
        _ = try AppDirectory(dataDirectory: folder.path + "/data").createApp(id: "shop")
        try storeEvent(of: "user-1", in: folder.path + "/data")
        let file = try folder.write(CompletionScript.bash(CommandTable.all), to: "completion")
        let shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_DATA": folder.path + "/data"])
        let line = (["countersign"] + words).map { "'\($0)'" }.joined(separator: " ")
        let result = try await shell.run(
            "exec bash -c 'source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _countersign; printf \"%s\\n\" \"${COMPREPLY[@]}\"' '\(file)' \(line)"
        )
        #expect(result.output == "user-1\n", "\(result)")
    }

    @Test(.enabled(if: isInstalled("groff"), "groff is not installed"))
    func manualPagesHaveNoWarnings() async throws {
        let folder = TemporaryFolder()
        _ = try folder.write(ManPage.program(CommandTable.all, version: "1"), to: "countersign.1")
        for command in CommandTable.all {
            let name = "countersign-\(command.path.joined(separator: "-")).1"
            _ = try folder.write(ManPage.command(command, version: "1"), to: name)
        }
        let result = try await Shell(folder: folder.path).run(
            "groff -man -ww -Tutf8 *.1 >/dev/null")
        #expect(result.status == 0 && result.talk.isEmpty, "\(result.talk)")
    }
}
