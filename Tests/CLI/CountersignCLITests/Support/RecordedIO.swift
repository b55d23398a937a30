@testable import CountersignCLI

/// Streams that record what is written to them.
final class RecordedIO: Sendable {
    let outputText = RecordedText()
    let talkText = RecordedText()
    let io: CommandIO

    /// `isLate` ends time limits at once. Otherwise they never end.
    init(
        environment: [String: String] = [:], isInteractive: Bool = false, isOutputWatched: Bool = false,
        width: Int? = nil, isInBackground: Bool = false, input: String = "", isLate: Bool = false,
        answer: @escaping @Sendable (String) -> String? = { _ in nil }
    ) {
        io = CommandIO(
            output: outputText.append, talk: talkText.append, input: { Array(input.utf8) },
            environment: environment, isInteractive: isInteractive, isOutputWatched: isOutputWatched,
            width: width, isInBackground: isInBackground, askOpenly: answer,
            schedule: { _, run in if isLate { run() } })
    }

    var output: String { outputText.text }
    var talk: String { talkText.text }

    /// Runs one command line of the real table, or of `commands`.
    func run(_ arguments: String..., commands: [Command] = CommandTable.all) async -> ExitCode {
        await run(arguments: arguments, commands: commands)
    }

    func run(arguments: [String], commands: [Command] = CommandTable.all) async -> ExitCode {
        await CommandLineProgram(commands: commands, io: io).run(arguments)
    }

    /// Runs a command line without quotes.
    func run(line: String) async -> ExitCode {
        await run(arguments: line.split(separator: " ").map(String.init))
    }
}

extension AdminClient {
    /// For clients of tests, which stream nothing.
    func stream(
        _ request: AdminRequest, _ take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws -> [(name: String, value: String)] { [] }
}
