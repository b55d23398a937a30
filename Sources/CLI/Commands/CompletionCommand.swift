enum CompletionCommand {
    private static let scripts = [
        "bash": CompletionScript.bash, "zsh": CompletionScript.zsh, "fish": CompletionScript.fish,
    ]
    private static let shell = Positional(
        "SHELL", choices: ["bash", "zsh", "fish"], help: "bash, zsh or fish")

    static let command = Command(
        "completion", summary: "Print the completion script of a shell",
        details: """
            bash  countersign completion bash > ~/.local/share/bash-completion/completions/countersign
            zsh   countersign completion zsh > "${fpath[1]}/_countersign"
            fish  countersign completion fish > ~/.config/fish/completions/countersign.fish
            """,
        positionals: [shell],
        examples: ["For this shell only": "countersign completion bash"]
    ) { try $0.io.print(scripts[$0[shell]] ?? "") }
}
