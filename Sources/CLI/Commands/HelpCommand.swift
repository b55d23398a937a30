/// `countersign help`.
enum HelpCommand {
    private static let topic = Positional(
        "TOPIC", .any, completes: .commands, help: "the words of a command, exit-codes or global-flags")
    private static let all = Flag("all", help: "list all commands, not only those of the first week")

    /// A closure, because the table contains this command.
    static func command(table: @escaping @Sendable () -> [Command]) -> Command {
        Command(
            "help", summary: "Print help on a command or a topic",
            positionals: [topic],
            examples: [
                "What do the exit codes mean?": "countersign help exit-codes",
                "How do I print the version?": "countersign help version",
            ]
        ) { invocation in
            let words = invocation.allWords(of: topic)
            if words == ["exit-codes"] {
                try invocation.io.print(HelpText.exitCodes)
                return
            }
            let commands = table()
            guard commands.contains(where: { $0.path.starts(with: words) }) else {
                throw CommandParser(commands: commands, io: invocation.io).unknownCommand(
                    words, first: nil)
            }
            try invocation.io.print(HelpText.text(for: words, commands: commands))
        }
    }
}
