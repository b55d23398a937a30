enum ManPage {
    /// `countersign.1`.
    static func program(_ commands: [Command], version: String) -> String {
        var lines = head("COUNTERSIGN", version)
        lines += [
            ".SH NAME", "countersign \\- authenticated delivery for apps: gateway and tools", ".SH SYNOPSIS",
            ".B countersign", ".I COMMAND", ".RI [ FLAGS ]", ".SH COMMANDS",
        ]
        for command in commands {
            lines += [".TP", ".B \(escaped(command.name))", text(command.summary + ".")]
        }
        lines += [".SH EXIT STATUS"]
        for (code, meaning) in ExitCode.table {
            lines += [".TP", ".B \(code.rawValue)", text(meaning)]
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// `countersign-app-create.1` and so on.
    static func command(_ command: Command, version: String) -> String {
        var lines = head("COUNTERSIGN-" + command.path.joined(separator: "-").uppercased(), version)
        lines += [
            ".SH NAME",
            "countersign-\(escaped(command.path.joined(separator: "-"))) \\- \(text(command.summary))",
            ".SH SYNOPSIS", ".B countersign \(escaped(command.name))",
        ]
        for positional in command.positionals { lines.append(".I \(escaped(positional.usage))") }
        if !command.flags.isEmpty { lines.append(".RI [ FLAGS ]") }
        if !command.details.isEmpty {
            lines += [".SH DESCRIPTION"] + command.details.split(separator: "\n").map { text(String($0)) }
        }
        if !command.positionals.isEmpty {
            lines.append(".SH ARGUMENTS")
            for positional in command.positionals {
                lines += [".TP", ".I \(escaped(positional.name))", text(positional.help)]
            }
        }
        if !command.flags.isEmpty {
            lines.append(".SH FLAGS")
            for flag in command.flags {
                lines += [".TP", ".B \(escaped(flag.usage))", text(HelpText.help(for: flag))]
            }
        }
        lines.append(".SH EXAMPLES")
        for example in command.examples {
            lines += [
                ".PP", text(example.purpose + ":"), ".PP", ".nf", ".RS", text(example.commandLine), ".RE",
                ".fi",
            ]
        }
        lines += [".SH SEE ALSO", ".BR countersign (1)"]
        return lines.joined(separator: "\n") + "\n"
    }

    private static func head(_ title: String, _ version: String) -> [String] {
        [
            ".\\\" Made from the command table by `countersign man`.",
            ".TH \"\(title)\" 1 \"\" \"countersign \(version)\"",
        ]
    }

    /// A line of text. A zero-width character precedes a control character at the start.
    private static func text(_ line: String) -> String {
        let text = escaped(line)
        return text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("…", with: "...")
    }
}
