@testable import CountersignCLI

/// Streams that remember what was written to them.
final class RecordedIO: Sendable {
    let outputText = RecordedText()
    let talkText = RecordedText()
    private let environment: [String: String]
    private let isInteractive: Bool
    private let isOutputWatched: Bool
    private let width: Int?
    private let isInBackground: Bool
    private let input: String
    private let answer: @Sendable (String) -> String?
    /// Whether time limits are over at once. Otherwise they never end.
    private let isLate: Bool

    init(
        environment: [String: String] = [:], isInteractive: Bool = false, isOutputWatched: Bool = false,
        width: Int? = nil, isInBackground: Bool = false, input: String = "",
        isLate: Bool = false,
        answer: @escaping @Sendable (String) -> String? = { _ in nil }
    ) {
        self.environment = environment
        self.isInteractive = isInteractive
        self.isOutputWatched = isOutputWatched
        self.width = width
        self.isInBackground = isInBackground
        self.input = input
        self.answer = answer
        self.isLate = isLate
    }

    var output: String { outputText.text }
    var talk: String { talkText.text }

    var io: CommandIO {
        CommandIO(
            output: outputText.append,
            talk: talkText.append,
            input: { Array(self.input.utf8) },
            environment: environment,
            isInteractive: isInteractive, isOutputWatched: isOutputWatched,
            width: width, isInBackground: isInBackground, askOpenly: answer,
            schedule: { [isLate] _, run in if isLate { run() } })
    }

    /// Runs one command line of the real table, or of `commands`.
    func run(_ arguments: String..., commands: [Command] = CommandTable.all) async -> ExitCode {
        await run(arguments: arguments, commands: commands)
    }

    func run(arguments: [String], commands: [Command] = CommandTable.all) async -> ExitCode {
        await CommandLineProgram(commands: commands, io: io).run(arguments)
    }
}
