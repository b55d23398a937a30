/// Every command, the daily ones first. A new command needs a line here and nothing else.
enum CommandTable {
    static let all: [Command] =
        [ServeCommand.command, DemoCommand.command]
        + AppCommand.commands
        + AppRulesCommand.commands
        + AppTokensCommand.commands
        + KeyCommand.commands
        + KeyGenerateCommand.commands
        + [TokenVerifyCommand.command, TokenCreateCommand.command]
        + ClientCommand.commands
        + SessionCommand.commands
        + SigningKeyCommand.commands
        + EnforcementCommand.commands
        + PolicyCommand.commands
        + ProjectCommand.commands
        + BackupCommand.commands
        + ConfigCommand.commands
        + [VersionCommand.command, HelpCommand.command]
}
