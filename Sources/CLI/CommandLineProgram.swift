internal import GatewayModel

struct CommandLineProgram: Sendable {
    let commands: [Command]
    let io: CommandIO

    /// Parses the arguments and runs the command. Returns the exit status. Prints errors to standard error.
    func run(_ arguments: [String]) async -> ExitCode {
        do {
            switch try CommandParser(commands: commands, io: io).parse(arguments) {
            case .help(let path):
                try io.print(HelpText(commands, io: io).text(for: path))
            case .run(let command, let invocation): try await command.run(invocation)
            }
            return .done
        } catch let code as ExitCode {
            return code
        } catch {
            let error =
                error as? CommandError ?? (error as? GatewayError).map(CommandError.init)
                ?? CommandError(.failed, "\(error)")
            let label = io.usesColor ? "\u{1B}[31mcountersign:\u{1B}[0m" : "countersign:"
            io.say("\(label) \(error.reason)")
            if let hint = error.hint { io.say("  \(hint)") }
            return error.code
        }
    }
}
