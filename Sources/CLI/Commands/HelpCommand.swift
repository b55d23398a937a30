enum HelpCommand {
    private static let topic = Positional(
        "TOPIC", .any, completes: .commands, help: "the words of a command, exit-codes or global-flags")
    private static let all = Flag("all", help: "list all commands, not only the most used")

    /// `table` is a closure, because the table contains this command.
    static func command(table: @escaping @Sendable () -> [Command]) -> Command {
        Command(
            "help", summary: "Print help on a command or a topic",
            positionals: [topic], flags: [all],
            examples: [
                "Which commands are there?": "countersign help --all",
                "What do the exit codes mean?": "countersign help exit-codes",
            ]
        ) { invocation in
            let words = invocation.allWords(of: topic)
            let commands = table()
            let help = HelpText(commands, io: invocation.io)
            switch words {
            case ["exit-codes"]: return try invocation.io.print(help.exitCodes)
            case ["global-flags"]: return try invocation.io.print(help.globalFlags)
            default: break
            }
            guard commands.contains(where: { $0.path.starts(with: words) }) else {
                throw CommandParser(commands: commands, io: invocation.io).unknownCommand(words, first: nil)
            }
            try invocation.io.print(help.text(for: words, all: invocation.isSet(all)))
        }
    }
}
