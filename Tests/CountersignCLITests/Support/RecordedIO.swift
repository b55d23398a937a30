import CountersignCore

@testable import CountersignCLI

/// Streams that remember what was written to them.
final class RecordedIO: Sendable {
    private let written = Lock((output: "", talk: ""))
    private let environment: [String: String]
    private let isInteractive: Bool
    private let input: String

    init(environment: [String: String] = [:], isInteractive: Bool = false, input: String = "") {
        self.environment = environment
        self.isInteractive = isInteractive
        self.input = input
    }

    var output: String { written.withLock { $0.output } }
    var talk: String { written.withLock { $0.talk } }

    var io: CommandIO {
        CommandIO(
            output: { text in self.written.withLock { $0.output += text } },
            talk: { text in self.written.withLock { $0.talk += text } },
            input: { Array(self.input.utf8) },
            environment: environment,
            isInteractive: isInteractive)
    }

    /// Runs one command line of the real table, or of `commands`.
    func run(_ arguments: String..., commands: [Command] = CommandTable.all) async -> ExitCode {
        await run(arguments: arguments, commands: commands)
    }

    func run(arguments: [String], commands: [Command] = CommandTable.all) async -> ExitCode {
        await CommandLineProgram(commands: commands, io: io).run(arguments)
    }
}
