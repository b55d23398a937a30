/// One command as data: parsing, help, and later completion and man pages are made from it.
struct Command: Sendable {
    /// The words that name it: `["app", "create"]`.
    let path: [String]
    /// One line, without a full stop.
    let summary: String
    /// What the summary cannot say; empty when nothing.
    let details: String
    let positionals: [Positional]
    let flags: [Flag]
    /// Command lines that work as printed in a shell, without pipes, and what each is good for; a test runs them.
    let examples: [(purpose: String, commandLine: String)]
    /// Throws what ends the program with another status than 0: an error to be said, or the status alone.
    let run: @Sendable (Invocation) async throws -> Void

    init(
        _ path: String, summary: String, details: String = "", positionals: [Positional] = [],
        flags: [Flag] = [], examples: KeyValuePairs<String, String>,
        run: @escaping @Sendable (Invocation) async throws -> Void
    ) {
        self.path = path.split(separator: " ").map(String.init)
        self.summary = summary
        self.details = details
        self.positionals = positionals
        self.flags = flags.flatMap { flag -> [Flag] in flag == .json ? [.json, .output] : [flag] }
        self.examples = examples.map { ($0.key, $0.value) }
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
