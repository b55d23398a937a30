/// `countersign completion`.
enum CompletionCommand {
    private static let shell = Positional(
        "SHELL", choices: ["bash", "zsh", "fish"], help: "bash, zsh or fish")

    /// A closure, because the table contains this command.
    static func command(table: @escaping @Sendable () -> [Command]) -> Command {
        Command(
            "completion", summary: "Print the completion script of a shell",
            details: """
                bash: countersign completion bash > ~/.local/share/bash-completion/completions/countersign
                zsh:  countersign completion zsh > "${fpath[1]}/_countersign"
                fish: countersign completion fish > ~/.config/fish/completions/countersign.fish
                """,
            positionals: [shell],
            examples: ["For this shell only": "countersign completion bash"]
        ) { invocation in
            let commands = table()
            switch invocation[shell] {
            case "bash": try invocation.io.print(CompletionScript.bash(commands))
            case "zsh": try invocation.io.print(CompletionScript.zsh(commands))
            default: try invocation.io.print(CompletionScript.fish(commands))
            }
        }
    }
}
