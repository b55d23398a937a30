/// A command with the arguments that it was given, checked.
struct Invocation: Sendable {
    /// The words that name the command, as typed.
    let commandName: String
    /// What the command declares.
    let flags: [Flag]
    let positionals: [Positional]
    /// The values that were given, by flag name in the order of the line; a switch has an empty one.
    let flagValues: [String: [String]]
    /// The words that were given, by the positional's name.
    let words: [String: [String]]
    let io: CommandIO

    /// The flag's value: as given, else from its environment variable, else its default, else nil. Throws `usage` when
    /// the environment variable's text is not a value of this flag.
    func value(of flag: Flag) throws(CommandError) -> String? {
        check(flag)
        if let given = flagValues[flag.name]?.last { return given }
        if let variable = flag.environment, let text = io.environment[variable], !text.isEmpty {
            if let problem = flag.problem(with: text) {
                throw CommandError(.usage, "\(variable): \(problem)")
            }
            return text
        }
        return flag.defaultValue
    }

    /// Every value that was given for a flag that may stand more than once; empty when none was.
    func values(of flag: Flag) -> [String] {
        check(flag)
        return flagValues[flag.name] ?? []
    }

    /// The flag's value as a number; nil when there is none. Throws `usage` when the environment variable's text is not
    /// a value of this flag.
    func integer(of flag: Flag) throws(CommandError) -> Int? {
        try value(of: flag).flatMap { Int(flag.plain($0)) }
    }

    /// True when the switch was given.
    func isSet(_ flag: Flag) -> Bool {
        check(flag)
        return flagValues[flag.name] != nil
    }

    private func check(_ flag: Flag) {
        precondition(flags.contains(flag), "the command \(commandName) does not declare --\(flag.name)")
    }

    /// The word given for an optional positional; nil when none was.
    func word(of positional: Positional) -> String? {
        allWords(of: positional).first
    }

    /// The words given for a positional that takes any number.
    func allWords(of positional: Positional) -> [String] {
        precondition(
            positionals.contains(positional), "\(commandName) does not declare \(positional.name)")
        return words[positional.name] ?? []
    }

    /// The id of the app that the command works on.
    var app: String { self[.app] }

    /// The word given for a positional that must be there.
    subscript(positional: Positional) -> String {
        precondition(positional.count == .one, "\(positional.name) may be missing; use word(of:)")
        guard let word = word(of: positional) else {
            preconditionFailure("the parser let \(commandName) pass without \(positional.name)")
        }
        return word
    }
}
