import Foundation
import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(1)))
struct CompletionTests {
    /// A shell that is installed reads the script without complaint.
    @Test(arguments: [("bash", "bash -n"), ("zsh", "zsh -n"), ("fish", "fish --no-execute")])
    func shellsReadTheirScript(shell: String, check: String) async throws {
        let folder = try TemporaryFolder()
        let text =
            switch shell {
            case "bash": CompletionScript.bash(CommandTable.all)
            case "zsh": CompletionScript.zsh(CommandTable.all)
            default: CompletionScript.fish(CommandTable.all)
            }
        let file = try folder.write(text, to: "completion")
        let result = try await Shell(folder: folder.path).run(
            "command -v \(shell) >/dev/null || exit 0\n\(check) '\(file)'")
        #expect(result.status == 0, "\(result.talk)")
    }

    @Test func bashCompletesCommandsFlagsAndChoices() async throws {
        let folder = try TemporaryFolder()
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

    @Test func manualPagesHaveNoWarnings() async throws {
        let folder = try TemporaryFolder()
        _ = try folder.write(ManPage.program(CommandTable.all, version: "1"), to: "countersign.1")
        for command in CommandTable.all {
            let name = "countersign-\(command.path.joined(separator: "-")).1"
            _ = try folder.write(ManPage.command(command, version: "1"), to: name)
        }
        let result = try await Shell(folder: folder.path).run(
            "command -v groff >/dev/null || exit 0\nfor f in *.1; do groff -man -ww -Tutf8 \"$f\" >/dev/null; done"
        )
        #expect(result.status == 0 && result.talk.isEmpty, "\(result.talk)")
    }
}
