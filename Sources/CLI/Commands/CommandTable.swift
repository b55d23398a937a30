/// All commands, the frequent ones first. A new first word of commands also needs an entry in ``CommandSection``.
enum CommandTable {
    static let all: [Command] =
        [
            ServeCommand.command, DevCommand.command, DashboardCommand.command, DemoCommand.command,
            SendCommand.command,
            TailCommand.command, ListenCommand.command, TriggerCommand.command, DoctorCommand.command,
            SelfCheckCommand.command,
        ]
        + AppCommand.commands
        + AppRulesCommand.commands
        + AppTokensCommand.commands
        + WriteKeyCommand.commands
        + KeyCommand.commands
        + [
            KeyGenerateCommand.command, TokenVerifyCommand.command, TokenInspectCommand.command,
            TokenCreateCommand.command,
        ]
        + EventCommand.commands + SampleCommand.commands
        + ConsumerCommand.commands
        + WebhookCommand.commands
        + StreamCommand.commands
        + FilesCommand.commands
        + CustomerCommand.commands
        + UserCommand.commands
        + ClientCommand.commands
        + SessionCommand.commands
        + SigningKeyCommand.commands
        + EnforcementCommand.commands
        + PolicyCommand.commands
        + ProjectCommand.commands
        + AuditCommand.commands
        + AdminCommand.commands
        + BackupCommand.commands
        + ProfileCommand.commands
        + [MigrateCommand.command, CopyCommand.command]
        + ClusterCommand.commands
        + ConfigCommand.commands
        + [
            CompletionCommand.command, CompleteCommand.command { all },
            ManCommand.command { all },
            VersionCommand.command, HelpCommand.command { all },
        ]
}
