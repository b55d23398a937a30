/// Every command, the daily ones first. A new command needs a line here and nothing else.
enum CommandTable {
    static let all: [Command] =
        [ServeCommand.command, DemoCommand.command]
        + AppCommand.commands
        + KeyCommand.commands
        + EnforcementCommand.commands
        + [VersionCommand.command, HelpCommand.command]
}
