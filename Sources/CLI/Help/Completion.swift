internal import CountersignCore

struct Completion {
    /// Words with their descriptions, which may be empty.
    private(set) var words: [(word: String, about: String)] = []
    private(set) var candidates: Candidates?
    private(set) var app: String?
    private(set) var flagValues: [String: [String]] = [:]

    /// Completes the last word of `line`. That word may be empty. `line` excludes the program's name.
    init(_ line: [String], commands: [Command]) {
        // bash passes `=` as a word of its own.
        let line = line.enumerated().filter { $0.element != "=" || $0.offset == line.count - 1 }.map(
            \.element)
        let current = line.last.map { $0 == "=" ? "" : $0 } ?? ""
        var path: [String] = []
        var loose: [String] = []
        var open: Flag?
        var flags: [Flag] { commands.filter { $0.path.starts(with: path) }.flatMap(\.flags) }
        for word in line.dropLast() {
            if let flag = open {
                flagValues[flag.name, default: []].append(word)
                open = nil
            } else if word.hasPrefix("-"), let (flag, attached) = CommandParser.find(word, in: flags) {
                if let attached { flagValues[flag.name, default: []].append(attached) }
                open = flag.value == .none || attached != nil ? nil : flag
            } else if loose.isEmpty, commands.contains(where: { $0.path.starts(with: path + [word]) }) {
                path.append(word)
            } else if !word.hasPrefix("-") {
                loose.append(word)
            }
        }
        let command = commands.first { $0.path == path }
        app = flagValues["app"]?.last ?? (command?.positionals.first == .app ? loose.first : nil)
        if let open {
            complete(open)
        } else if current.hasPrefix("-") {
            words =
                (command?.flags ?? Flag.target).map { ("--\($0.name)", $0.help) } + [("--help", "Print help")]
        } else if let command {
            complete(command, after: loose, commands)
        } else if loose.isEmpty {
            words = Self.next(after: path, commands)
        }
    }

    private mutating func complete(_ flag: Flag) {
        switch flag.value {
        case .choice(let choices): words = choices.map { ($0, "") }
        case .path: candidates = .files
        default: candidates = flag.completes
        }
    }

    private mutating func complete(_ command: Command, after loose: [String], _ commands: [Command]) {
        let index = min(loose.count, command.positionals.count - 1)
        guard index >= 0, index == loose.count || command.positionals[index].count == .any else { return }
        let positional = command.positionals[index]
        words = positional.choices?.map { ($0, "") } ?? []
        if positional.completes == .commands {
            words += Self.next(after: loose, commands)
        } else {
            candidates = positional.completes
        }
    }

    /// The words that can follow `path`, with the summary of a command or the description of a group.
    private static func next(after path: [String], _ commands: [Command]) -> [(word: String, about: String)] {
        let sections = path.isEmpty ? CommandSection.all.flatMap(\.words) : []
        return commands.words(after: path).map { word in
            let group = sections.first { $0.key == word }?.value
            return (word, group ?? commands.first { $0.path == path + [word] }?.summary ?? "")
        }
    }
}
