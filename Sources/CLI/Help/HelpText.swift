struct HelpText {
    let commands: [Command]
    let width: Int

    init(_ commands: [Command], io: CommandIO) {
        self.commands = commands
        width = min(io.width ?? 80, 100)
    }

    /// The list of the commands whose path begins with `path`, or the complete help of a command with this
    /// path. Without a path, lists the commands of the first week, or all with `all`.
    func text(for path: [String], all: Bool = false) -> String {
        if let command = commands.first(where: { $0.path == path }) { return text(for: command) }
        if path.isEmpty { return program(all: all) }
        let shown = commands.filter { $0.path.starts(with: path) }
        let usage = (["countersign"] + path + ["COMMAND"]).joined(separator: " ")
        let lines =
            ["Usage: \(usage) [FLAGS]", "", "Commands:"]
            + table(shown.map { ($0.name, $0.summary) })
            + [
                "", "`countersign COMMAND --help` explains a command, with examples.",
                "`countersign help exit-codes` lists what the exit status means.",
            ]
        return lines.joined(separator: "\n")
    }

    /// The help of the program: one line for each first word, in sections.
    private func program(all: Bool) -> String {
        var lines = [
            "Authenticated delivery for apps: gateway and tools.", "", "Usage: countersign COMMAND [FLAGS]",
        ]
        for section in CommandSection.all {
            let rows = section.words.filter { all || CommandSection.firstWeek.contains($0.key) }
                .map { word, about in (word, about ?? commands.first { $0.path == [word] }?.summary ?? "") }
            if !rows.isEmpty { lines += ["", "\(section.title):"] + table(rows, column: 15) }
        }
        let end = """
            `countersign COMMAND --help` explains a command or lists a group's commands. `countersign help
            global-flags` lists the flags that choose where a command works, `countersign help exit-codes` what the
            exit status means.
            """
        lines += [""] + (all ? [] : ["`countersign help --all` lists all commands."]) + wrapped(end)
        return lines.joined(separator: "\n")
    }

    var exitCodes: String {
        (["Exit status:"] + table(ExitCode.table.map { (String($0.code.rawValue), $0.meaning) }))
            .joined(separator: "\n")
    }

    var globalFlags: String {
        (["Flags that choose where a command works:"]
            + table(Flag.target.map { ($0.usage, Self.help(for: $0)) })).joined(separator: "\n")
    }

    private func text(for command: Command) -> String {
        let usage =
            ["countersign", command.name] + command.positionals.map(\.usage)
            + (command.flags.isEmpty ? [] : ["[FLAGS]"])
        let shared = command.flags.first { $0 == .server || $0 == .profile }
        let flags = command.flags.filter { shared == nil || !Flag.target.contains($0) }
        var lines = wrapped(command.summary + ".") + ["", "Usage: \(usage.joined(separator: " "))"]
        lines += ["", "Examples:"]
        for example in command.examples {
            lines += ["  # \(example.purpose)", "  \(example.commandLine)"]
        }
        if !command.details.isEmpty { lines += [""] + wrapped(command.details) }
        if !command.positionals.isEmpty {
            lines += ["", "Arguments:"] + table(command.positionals.map { ($0.name, $0.help) })
        }
        if !flags.isEmpty { lines += ["", "Flags:"] + table(flags.map { ($0.usage, Self.help(for: $0)) }) }
        if let shared {
            let note =
                "Global flags: --\(shared.name), --data and others; see `countersign help global-flags`."
            lines += [""] + wrapped(note)
        }
        return lines.joined(separator: "\n")
    }

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

    /// Rows of a name and a description. A description starts on its own line after a long name.
    private func table(_ rows: [(String, String)], column: Int? = nil) -> [String] {
        let column = column ?? min(rows.map(\.0.count).max() ?? 0, 26) + 4
        let indent = String(repeating: " ", count: column)
        return rows.flatMap { name, about -> [String] in
            var lines = wrapped(about, indent: indent)
            let start = "  " + name
            guard start.count + 2 <= column, !lines.isEmpty else { return [start] + lines }
            lines[0] = start + lines[0].dropFirst(start.count)
            return lines
        }
    }

    /// The paragraphs of a text as lines. A line with two spaces in a row, such as a table's, is not wrapped.
    private func wrapped(_ text: String, indent: String = "") -> [String] {
        var lines: [String] = []
        var line: String?
        for source in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if source.isEmpty || source.contains("  ") {
                lines += [line, indent + source].compactMap { $0 }
                line = nil
                continue
            }
            for word in source.split(separator: " ") {
                if let begun = line, begun.count + 1 + word.count <= width {
                    line = begun + " " + word
                } else {
                    if let line { lines.append(line) }
                    line = indent + word
                }
            }
        }
        return lines + [line].compactMap { $0 }
    }
}
