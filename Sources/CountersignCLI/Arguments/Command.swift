/// One command as data: parsing, help, and later completion and man pages are made from it.
struct Command: Sendable {
    /// A command line that works as printed; a test runs it.
    struct Example: Sendable, Equatable {
        /// What it is good for.
        let purpose: String
        /// As typed in a shell, without pipes.
        let commandLine: String

        init(_ purpose: String, _ commandLine: String) {
            self.purpose = purpose
            self.commandLine = commandLine
        }
    }

    /// The words that name it: `["app", "create"]`.
    let path: [String]
    /// One line, without a full stop.
    let summary: String
    /// What the summary cannot say; empty when nothing.
    let details: String
    let positionals: [Positional]
    let flags: [Flag]
    /// At least one.
    let examples: [Example]
    let run: @Sendable (Invocation) async throws -> ExitCode

    init(
        _ path: String, summary: String, details: String = "", positionals: [Positional] = [],
        flags: [Flag] = [],
        examples: [Example], run: @escaping @Sendable (Invocation) async throws -> ExitCode
    ) {
        self.path = path.split(separator: " ").map(String.init)
        self.summary = summary
        self.details = details
        self.positionals = positionals
        self.flags = flags
        self.examples = examples
        self.run = run
    }

    /// The words that name it, as typed.
    var name: String { path.joined(separator: " ") }

    /// The command with what it was given, which has been checked.
    func invocation(flagValues: [String: [String]], words: [String: [String]], io: CommandIO) -> Invocation {
        Invocation(
            commandName: name, flags: flags, positionals: positionals, flagValues: flagValues, words: words,
            io: io)
    }
}
