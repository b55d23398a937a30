/// Generates completion scripts for command words, flags and choices.
enum CompletionScript {
    /// A position in a command line: the preceding words and possible continuations.
    private struct Position {
        let words: String
        /// The possible next words with their summaries, which are empty for groups.
        let next: [(word: String, summary: String)]
        let command: Command?

        /// The words in the scripts' format.
        var path: String { words.replacing(" ", with: ".") }
    }

    private static func places(_ commands: [Command]) -> [Position] {
        var prefixes: [[String]] = [[]]
        for command in commands {
            for count in 1...command.path.count {
                let prefix = Array(command.path.prefix(count))
                if !prefixes.contains(prefix) { prefixes.append(prefix) }
            }
        }
        return prefixes.map { prefix in
            var next: [(word: String, summary: String)] = []
            for command in commands
            where command.path.starts(with: prefix) && command.path.count > prefix.count {
                let word = command.path[prefix.count]
                guard !next.contains(where: { $0.word == word }) else { continue }
                let isLeaf = command.path.count == prefix.count + 1
                next.append(
                    (word, isLeaf ? command.summary : "\((prefix + [word]).joined(separator: " ")) …"))
            }
            return Position(
                words: prefix.joined(separator: " "), next: next,
                command: commands.first { $0.path == prefix })
        }
    }

    private static func choices(_ command: Command) -> [(flag: String, words: [String])] {
        command.flags.compactMap { flag in
            if case .choice(let words) = flag.value { ("--\(flag.name)", words) } else { nil }
        }
    }

    /// The cases for bash and zsh: the values of flags by position and flag, then the continuations by
    /// position.
    private static func cases(
        _ places: [Position], values: (_ words: String) -> String, next: (Position) -> String
    ) -> [String] {
        let flags = places.flatMap { place in
            (place.command.map(choices) ?? []).map { flag, words in
                "        \"\(place.path) \(flag)\") \(values(words.joined(separator: " "))); return ;;"
            }
        }
        return flags + ["    esac", "    case \"$path\" in"]
            + places.map { "        \"\($0.path)\") \(next($0)) ;;" }
    }

    private static func known(_ places: [Position]) -> String {
        "_countersign_paths=\"\(places.map(\.path).filter { !$0.isEmpty }.joined(separator: " "))\""
    }

    private static func words(_ place: Position) -> String {
        (place.next.map(\.word) + (place.command?.positionals.first?.choices ?? [])
            + (place.command?.flags.map { "--\($0.name)" } ?? []) + ["--help"]).joined(separator: " ")
    }

    /// The kinds of ids that `countersign complete` provides after a command: apps, then keys or users of the
    /// app.
    private static func ids(_ place: Position) -> [String] {
        guard let words = place.command?.positionals, words.first == .app else { return [] }
        switch (place.command?.path.first, words.dropFirst().first?.name) {
        case ("key", "KEY"): return ["apps", "keys"]
        case ("customer", "ID"), ("user", "USER"): return ["apps", "users"]
        default: return ["apps"]
        }
    }

    /// The cases that complete ids of apps or keys. In bash and zsh, a case consists of the number of further
    /// words and the command's words in `path`. `app` is the word after the command.
    private static func idCases(
        _ places: [Position], previous: String, app: String, take: (String) -> String
    ) -> [String] {
        func second(_ kind: String) -> String {
            places.filter { ids($0).last == kind }.map { "\"1 \($0.path)\"" }.joined(separator: "|") + ") "
                + take("countersign complete \(kind) \"\(previous)\"") + " ;;"
        }
        return [
            "    case \"$behind $path\" in",
            places.filter { !ids($0).isEmpty }.map { "\"0 \($0.path)\"" }.joined(separator: "|") + ") "
                + take("countersign complete apps") + " ;;",
            second("keys"), second("users"),
            "    esac",
            "    case \"\(previous)\" in",
            "        --app) " + take("countersign complete apps") + " ;;",
            "        --user) " + take("countersign complete users \"\(app)\"") + " ;;",
            "        --profile) " + take("countersign complete profiles") + " ;;",
            "    esac",
        ]
    }

    static func bash(_ commands: [Command]) -> String {
        var lines = [
            "# bash completion for countersign", "_countersign() {",
            "    local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"",
            "    local path=\"\" word behind=$((COMP_CWORD - 1))",
            "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do",
            "        case \"$word\" in -*) break ;; esac",
            "        case \" $_countersign_paths \" in *\" ${path:+$path.}$word \"*) path=\"${path:+$path.}$word\" behind=$((behind - 1)) ;; *) break ;; esac",
            "    done",
        ]
        let places = places(commands)
        lines += idCases(places, previous: "$previous", app: "${COMP_WORDS[COMP_CWORD-behind]}") {
            "COMPREPLY=($(compgen -W \"$(\($0) 2>/dev/null)\" -- \"$current\")); [[ $current == -* ]] || return"
        }
        lines.append("    case \"$path $previous\" in")
        lines += cases(
            places, values: { "COMPREPLY=($(compgen -W \"\($0)\" -- \"$current\"))" },
            next: { "COMPREPLY=($(compgen -W \"\(words($0))\" -- \"$current\"))" })
        lines += [
            "    esac", "    [ \"${#COMPREPLY[@]}\" -gt 0 ] || COMPREPLY=($(compgen -f -- \"$current\"))",
            "}",
            known(places), "complete -o filenames -F _countersign countersign",
        ]
        return lines.joined(separator: "\n")
    }

    static func zsh(_ commands: [Command]) -> String {
        var lines = [
            "#compdef countersign", "_countersign() {",
            "    local path=\"\" word index=2 behind=$((CURRENT - 2))",
            "    local -a items", "    while (( index < CURRENT )); do", "        word=\"${words[index]}\"",
            "        [[ \"$word\" == -* ]] && break",
            "        case \" $_countersign_paths \" in *\" ${path:+$path.}$word \"*) path=\"${path:+$path.}$word\" ;; *) break ;; esac",
            "        (( index++, behind-- ))", "    done",
        ]
        let places = places(commands)
        lines += idCases(places, previous: "${words[CURRENT-1]}", app: "${words[CURRENT-behind]}") {
            "[[ ${words[CURRENT]} == -* ]] || { compadd -- ${(f)\"$(\($0) 2>/dev/null)\"}; return }"
        }
        lines.append("    case \"$path ${words[CURRENT-1]}\" in")
        lines += cases(places, values: { "compadd -- \($0)" }) { place in
            let items =
                place.next.map { item(":", $0.word, $0.summary) }
                + (place.command?.positionals.first?.choices ?? []).map { item(":", $0, "") }
                + (place.command?.flags.map { item(":", "--\($0.name)", $0.help) } ?? [])
                + [item(":", "--help", "Print help")]
            return "items=(\(items.joined(separator: " ")))"
        }
        lines += [
            "    esac", "    _describe 'countersign' items || _files", "}",
            known(places), "compdef _countersign countersign",
        ]
        return lines.joined(separator: "\n")
    }

    static func fish(_ commands: [Command]) -> String {
        var lines = [
            "# fish completion for countersign", "function __countersign_at",
            "    set -l words (commandline -opc)[2..-1]", "    set -l path",
            "    for word in $words", "        string match -q -- '-*' $word; and break",
            "        set -a path $word", "    end", "    test \"$path\" = \"$argv\"", "end",
            "function __countersign_in", "    set -l words (commandline -opc)[2..-1]",
            "    string match -q -- \"$argv*\" \"$words\"", "end", "complete -c countersign -f",
        ]
        for place in places(commands) {
            let at = "-n '__countersign_at \(place.words)'"
            for (word, summary) in place.next {
                lines.append("complete -c countersign \(at) -a \(word) -d \(quoted(summary))")
            }
            guard let command = place.command else { continue }
            let within = "-n '__countersign_in \(place.words)'"
            for flag in command.flags {
                let value =
                    switch flag.value {
                    case .none: ""
                    case .choice(let words): " -x -a \(quoted(words.joined(separator: " ")))"
                    case .path: " -r -F"
                    case .text, .integer, .duration, .size: " -x"
                    }
                lines.append(
                    "complete -c countersign \(within) -l \(flag.name)\(value) -d \(quoted(flag.help))")
            }
            for choice in command.positionals.first?.choices ?? [] {
                lines.append("complete -c countersign \(at) -a \(choice)")
            }
            if !ids(place).isEmpty {
                lines.append("complete -c countersign \(at) -a '(countersign complete apps 2>/dev/null)'")
            }
            if ids(place).count > 1, let kind = ids(place).last {
                lines.append(
                    "complete -c countersign \(within) -a '(countersign complete \(kind) (commandline -opc)[-1] 2>/dev/null)'"
                )
            }
            if command.positionals.contains(where: { $0.choices == nil && $0 != .app }) {
                lines.append("complete -c countersign \(within) -F")
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func item(_ separator: String, _ word: String, _ summary: String) -> String {
        quoted(word + (summary.isEmpty ? "" : separator + summary.replacing(":", with: ";")))
    }

    /// Quotes text with single quotes, for all three shells.
    private static func quoted(_ text: String) -> String {
        "'" + text.replacing("'", with: "’") + "'"
    }
}
