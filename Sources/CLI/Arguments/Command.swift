struct Command: Sendable {
    let path: [String]
    let summary: String
    let details: String
    let positionals: [Positional]
    let flags: [Flag]
    /// Command lines that work as printed in a shell, without pipes, and their purposes. A test runs them.
    let examples: [(purpose: String, commandLine: String)]
    /// Runs the command. Throws an error to print, or an ``ExitCode`` for a status other than 0.
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

    var name: String { path.joined(separator: " ") }

    func invocation(flagValues: [String: [String]], words: [String: [String]], io: CommandIO) -> Invocation {
        Invocation(
            commandName: name, flags: flags, positionals: positionals, flagValues: flagValues, words: words,
            io: io)
    }
}

extension [Command] {
    /// The words that can follow the path, each once.
    func words(after path: [String]) -> [String] {
        filter { $0.path.starts(with: path) && $0.path.count > path.count }.map { $0.path[path.count] }
            .reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }
}
