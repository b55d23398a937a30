internal import CountersignCore

struct Invocation: Sendable {
    let commandName: String
    let flags: [Flag]
    let positionals: [Positional]
    /// The given values in order, by flag name. A flag that takes no value has one empty string.
    let flagValues: [String: [String]]
    /// The given arguments that are not flags, by the name of the positional.
    let words: [String: [String]]
    let io: CommandIO

    /// The flag's value: as given, else from its environment variable, else its default, else nil. Throws
    /// `usage` if the variable's text is invalid.
    func value(of flag: Flag) throws(CommandError) -> String? {
        check(flag)
        if let given = flagValues[flag.name]?.last { return given }
        if let variable = flag.environment, let text = io.variable(variable) {
            if let problem = flag.problem(with: text) {
                throw CommandError(.usage, "\(variable): \(problem)")
            }
            return text
        }
        return flag.defaultValue
    }

    func values(of flag: Flag) -> [String] {
        check(flag)
        return flagValues[flag.name] ?? []
    }

    /// Throws `usage` if the environment variable's text is invalid.
    func integer(of flag: Flag) throws(CommandError) -> Int? {
        try value(of: flag).flatMap { Int(flag.plain($0)) }
    }

    /// The flag's value for the admin API: a number for an integer, a duration or a size, else text.
    func json(of flag: Flag) throws(CommandError) -> JSONValue? {
        switch flag.value {
        case .integer, .duration, .size: try integer(of: flag).map { .integer(Int64($0)) }
        default: try value(of: flag).map { .string($0) }
        }
    }

    func isSet(_ flag: Flag) -> Bool {
        check(flag)
        return flagValues[flag.name] != nil
    }

    private func check(_ flag: Flag) {
        precondition(flags.contains(flag), "the command \(commandName) does not declare --\(flag.name)")
    }

    func word(of positional: Positional) -> String? {
        allWords(of: positional).first
    }

    func allWords(of positional: Positional) -> [String] {
        precondition(
            positionals.contains(positional), "\(commandName) does not declare \(positional.name)")
        return words[positional.name] ?? []
    }

    var app: String { self[.app] }

    subscript(positional: Positional) -> String {
        precondition(positional.count == .one, "\(positional.name) may be missing; use word(of:)")
        guard let word = word(of: positional) else {
            preconditionFailure("the parser let \(commandName) pass without \(positional.name)")
        }
        return word
    }
}
