struct CommandParser {
    enum Outcome {
        case run(Command, Invocation)
        /// Help for the commands whose path begins with these words; empty for all.
        case help([String])
    }

    let commands: [Command]
    let io: CommandIO

    /// Words of other programs' commands, for suggestions.
    private static let synonyms = [
        "ls": "list", "rm": "delete", "remove": "delete", "new": "create", "get": "show", "describe": "show",
        "unblock": "allow",
    ]

    /// Returns a validated invocation or a help topic. Throws `usage`, with the most similar word as a hint.
    func parse(_ arguments: [String]) throws(CommandError) -> Outcome {
        // `sink` is an alias of `stream`.
        if arguments.first == "sink" { return try parse(["stream"] + arguments.dropFirst()) }
        if let reordered = commandFirst(arguments) { return try parse(reordered) }
        let path = arguments.prefix { !$0.hasPrefix("-") }
        let asksForHelp =
            arguments.isEmpty || path.last == "help" && command(for: path) == nil
            || arguments.prefix { $0 != "--" }.contains { $0 == "--help" || $0 == "-h" }
        guard let command = command(for: path) else {
            let topic = Array(path.last == "help" ? path.dropLast() : path)
            if asksForHelp, topic.isEmpty || isGroup(topic) { return .help(topic) }
            if arguments.first == "--version" { return try parse(["version"]) }
            throw unknownCommand(Array(path), first: arguments.first)
        }
        if asksForHelp { return .help(command.path) }
        return .run(command, try invocation(of: command, Array(arguments.dropFirst(command.path.count))))
    }

    private func command(for words: ArraySlice<String>) -> Command? {
        commands.filter { words.starts(with: $0.path) }.max { $0.path.count < $1.path.count }
    }

    /// Moves flags that precede the command or are between its words behind its last word. Returns nil without
    /// such flags, or if no command accepts them.
    private func commandFirst(_ arguments: [String]) -> [String]? {
        guard command(for: arguments.prefix { !$0.hasPrefix("-") }) == nil else { return nil }
        return commands.sorted { $0.path.count > $1.path.count }.lazy
            .compactMap { commandFirst($0, arguments) }.first
    }

    private func commandFirst(_ command: Command, _ arguments: [String]) -> [String]? {
        var path = command.path[...]
        var flags: [String] = []
        var index = 0
        while let word = path.first {
            guard index < arguments.count else { return nil }
            if arguments[index] == word || word == "stream" && arguments[index] == "sink" {
                path.removeFirst()
                index += 1
                continue
            }
            guard let width = width(of: arguments[index], command) else { return nil }
            flags += arguments[index...].prefix(width)
            index += width
        }
        return command.path + flags + arguments.dropFirst(index)
    }

    /// The number of words of a flag with its value; nil if the command does not have the flag.
    private func width(of word: String, _ command: Command) -> Int? {
        if ["--help", "-h"].contains(word) { return 1 }
        guard word.hasPrefix("-"), let (flag, attached) = Self.find(word, in: command.flags) else {
            return nil
        }
        return flag.value == .none || attached != nil ? 1 : 2
    }

    private func isGroup(_ path: [String]) -> Bool {
        commands.contains { $0.path.starts(with: path) }
    }

    func unknownCommand(_ path: [String], first: String?) -> CommandError {
        if let first, path.isEmpty {
            return CommandError(
                .usage, "there is a flag but no command: \(first)",
                hint: "`countersign help --all` lists the commands")
        }
        if isGroup(path) {
            let name = path.joined(separator: " ")
            return CommandError(
                .usage,
                "`\(name)` needs a subcommand: \(commands.words(after: path).joined(separator: ", "))",
                hint: "`countersign \(name) --help` describes each")
        }
        // Finds the first unknown word, so that the error names it.
        var known: [String] = []
        for word in path {
            guard isGroup(known + [word]) else { break }
            known.append(word)
        }
        let wrong = path[known.count]
        let candidates = commands.words(after: known)
        let prefix = (known + [""]).joined(separator: " ")
        let hint =
            if let meant = Self.synonyms[wrong].flatMap({ candidates.contains($0) ? $0 : nil })
                ?? Suggestion.nearest(to: wrong, among: candidates)
            {
                "did you mean `countersign \(prefix)\(meant)`?"
            } else {
                "`countersign \(known.isEmpty ? "help --all" : "\(prefix)--help")` lists the commands"
            }
        return CommandError(.usage, "there is no command `\(prefix)\(wrong)`", hint: hint)
    }

    private func invocation(of command: Command, _ arguments: [String]) throws(CommandError) -> Invocation {
        var values: [String: [String]] = [:]
        var loose: [String] = []
        var index = 0
        while index < arguments.count {
            let argument = arguments[index]
            index += 1
            if argument == "--" {
                loose += arguments[index...]
                break
            }
            guard argument.hasPrefix("-"), argument != "-", !Self.isID(argument) else {
                loose.append(argument)
                continue
            }
            let (flag, attached) = try flag(argument, of: command)
            guard values[flag.name, default: []].count < flag.maximumCount else {
                let times = flag.maximumCount == 1 ? "twice" : "more than \(flag.maximumCount) times"
                throw CommandError(.usage, "--\(flag.name) is given \(times)")
            }
            if flag.value == .none {
                guard attached == nil else { throw CommandError(.usage, "--\(flag.name) takes no value") }
                values[flag.name] = [""]
                continue
            }
            let value: String
            if let attached {
                value = attached
            } else if index < arguments.count, !arguments[index].hasPrefix("--") {
                value = arguments[index]
                index += 1
            } else {
                throw CommandError(.usage, "--\(flag.name) needs a value", hint: flag.usage)
            }
            if let problem = flag.problem(with: value) {
                throw CommandError(.usage, problem, hint: Self.meant(value, flag))
            }
            values[flag.name, default: []].append(value)
        }
        return command.invocation(
            flagValues: values, words: try Self.words(loose, of: command), io: io)
    }

    /// Whether the argument has the form of a key's id (RFC 7638) or of an old API token's id, which may
    /// begin with a dash.
    private static func isID(_ argument: String) -> Bool {
        guard !argument.contains("=") else { return false }
        return argument.utf8.count == 43 || argument.utf8.count == 12 && !argument.hasPrefix("--")
    }

    private func flag(_ argument: String, of command: Command) throws(CommandError) -> (
        Flag, attached: String?
    ) {
        if let found = Self.find(argument, in: command.flags) { return found }
        let (written, name, _) = Self.parts(of: argument)
        let hint =
            if let meant = Suggestion.nearest(to: name, among: command.flags.map(\.name)) {
                "did you mean --\(meant)?"
            } else {
                "`countersign \(command.name) --help` lists its flags"
            }
        throw CommandError(.usage, "`\(command.name)` has no flag \(written)", hint: hint)
    }

    /// The flag in `argument` and its attached value, as in `--output=json` or `-ojson`.
    static func find(_ argument: String, in flags: [Flag]) -> (Flag, attached: String?)? {
        let (written, name, attached) = parts(of: argument)
        if written.hasPrefix("--") { return flags.first { $0.name == name }.map { ($0, attached) } }
        guard let flag = flags.first(where: { $0.letter != nil && $0.letter == name.first }) else {
            return nil
        }
        if name.count == 1 { return (flag, attached) }
        return flag.value == .none ? nil : (flag, String(argument.dropFirst(2)))
    }

    /// A flag as written, its name, and the value after its `=`.
    private static func parts(of argument: String) -> (written: String, name: String, attached: String?) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
            String.init)
        return (parts[0], String(parts[0].drop { $0 == "-" }), parts.count > 1 ? parts[1] : nil)
    }

    private static func meant(_ value: String, _ flag: Flag) -> String? {
        guard case .choice(let words) = flag.value else { return nil }
        return Suggestion.nearest(to: value, among: words).map { "did you mean \($0)?" }
    }

    private static func words(_ loose: [String], of command: Command) throws(CommandError) -> [String:
        [String]]
    {
        var rest = loose[...]
        var words: [String: [String]] = [:]
        for positional in command.positionals {
            switch positional.count {
            case .any:
                words[positional.name] = Array(rest)
                rest = []
            case .one where rest.isEmpty:
                throw CommandError(
                    .usage, "`\(command.name)` needs \(positional.name)",
                    hint: "\(positional.name): \(positional.help)")
            case .one, .optional:
                if let word = rest.popFirst() { words[positional.name] = [word] }
            }
            if !positional.mayBeEmpty, words[positional.name]?.contains("") == true {
                throw CommandError(
                    .usage, "\(positional.name) is empty", hint: "\(positional.name): \(positional.help)")
            }
            if let choices = positional.choices,
                let wrong = words[positional.name]?.first(where: { !choices.contains($0) })
            {
                throw CommandError(
                    .usage, "\(positional.name) is one of \(choices.joined(separator: ", ")), not '\(wrong)'",
                    hint: Suggestion.nearest(to: wrong, among: choices).map { "did you mean \($0)?" })
            }
        }
        if let extra = rest.first {
            // Many commands take the name or the app as an argument. Suggests the flag of this command.
            let flag = command.flags.map(\.name).first { ["name", "app"].contains($0) }
            throw CommandError(
                .usage, "`\(command.name)` takes no argument '\(extra)'",
                hint: flag.map { "did you mean --\($0) \(extra)?" })
        }
        return words
    }
}
