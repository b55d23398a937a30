enum HelpText {
    /// The list of the commands whose path begins with `path`, or the complete help of a command with this
    /// path.
    static func text(for path: [String], commands: [Command]) -> String {
        if let command = commands.first(where: { $0.path == path }) { return text(for: command) }
        if path.isEmpty { return program(commands) }
        let shown = commands.filter { $0.path.starts(with: path) }
        let usage = (["countersign"] + path + ["COMMAND"]).joined(separator: " ")
        let lines =
            ["Usage: \(usage) [FLAGS]", "", "Commands:"]
            + table(shown.map { ($0.name, $0.summary) })
            + [
                "", "`countersign COMMAND --help` says more, with examples.",
                "`countersign help exit-codes` lists what the exit status means.",
            ]
        return lines.joined(separator: "\n")
    }

    /// The help of the program: one line for each first word, in sections.
    private static func program(_ commands: [Command]) -> String {
        var lines = [
            "Authenticated delivery for apps: gateway and tools.", "", "Usage: countersign COMMAND [FLAGS]",
        ]
        let width = CommandSection.all.flatMap { $0.words.map(\.key.count) }.max() ?? 0
        for section in CommandSection.all {
            lines += ["", "\(section.title):"]
            for (word, about) in section.words {
                let summary = about ?? commands.first { $0.path == [word] }?.summary ?? ""
                lines.append("  " + word + String(repeating: " ", count: width - word.count + 2) + summary)
            }
        }
        lines += [
            "",
            "`countersign WORD --help` lists a group's commands, `countersign COMMAND --help` says more, with examples.",
            "Flags may stand before, between and after the words. `countersign help exit-codes` lists what the exit status means.",
        ]
        return lines.joined(separator: "\n")
    }

    static var exitCodes: String {
        (["Exit status:"] + table(ExitCode.table.map { (String($0.code.rawValue), $0.meaning) }))
            .joined(separator: "\n")
    }

    private static func text(for command: Command) -> String {
        let usage =
            ["countersign", command.name] + command.positionals.map(\.usage)
            + (command.flags.isEmpty ? [] : ["[FLAGS]"])
        var lines = [command.summary + ".", "", "Usage: \(usage.joined(separator: " "))"]
        if !command.details.isEmpty { lines += ["", command.details] }
        if !command.positionals.isEmpty {
            lines += ["", "Arguments:"] + table(command.positionals.map { ($0.name, $0.help) })
        }
        if !command.flags.isEmpty {
            lines += ["", "Flags:"] + table(command.flags.map { ($0.usage, help(for: $0)) })
        }
        lines += ["", "Examples:"]
        for example in command.examples {
            lines += ["  # \(example.purpose)", "  \(example.commandLine)"]
        }
        return lines.joined(separator: "\n")
    }

    /// The description of a flag with its environment variable and default.
    static func help(for flag: Flag) -> String {
        var notes: [String] = []
        if let variable = flag.environment { notes.append("or $\(variable)") }
        if let value = flag.defaultValue, !value.isEmpty { notes.append("default: \(flag.withUnit(value))") }
        switch flag.value {
        case .duration(let unit, _): notes.append("in \(unit.rawValue), or as \(unit.examples)")
        case .size: notes.append("in bytes, or as 500MB or 10GB")
        default: break
        }
        return notes.isEmpty ? flag.help : "\(flag.help) (\(notes.joined(separator: "; ")))"
    }

    private static func table(_ rows: [(String, String)]) -> [String] {
        TextTable(rows: rows.map { [$0, $1] }).lines.map { "  " + $0 }
    }
}
