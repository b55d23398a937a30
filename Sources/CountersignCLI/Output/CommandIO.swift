internal import Foundation

/// Where a command reads and writes. Data goes to standard output, talk to standard error.
struct CommandIO: Sendable {
    /// Takes data. Throws when nobody can take it, such as on a full disk.
    let output: @Sendable (String) throws -> Void
    /// Takes talk: progress, notes, errors.
    let talk: @Sendable (String) -> Void
    /// Reads standard input to its end.
    let input: @Sendable () throws -> [UInt8]
    let environment: [String: String]
    /// A person watches standard error, so progress may be redrawn in place.
    let isInteractive: Bool
    /// A person watches standard output, so data may be coloured.
    var isOutputWatched = false
    /// How many characters a line of the terminal has at which a person reads data; nil when nobody does.
    var width: Int?
    /// The terminal takes what is typed to another job, such as the shell that has started this one with `&`.
    var isInBackground = false
    /// Asks the person at the terminal for a secret, which is not shown; nil when nobody is there.
    var ask: @Sendable (String) -> String? = { _ in nil }
    /// Asks the person at the terminal for a line, which is shown; nil when nobody is there.
    var askOpenly: @Sendable (String) -> String? = { _ in nil }

    /// Prints a line of data.
    func print(_ line: String) throws {
        try output(line + "\n")
    }

    /// Prints a line for the person at the terminal.
    func say(_ line: String) {
        talk(line + "\n")
    }

    /// True when talk may be coloured: a person watches, and neither `NO_COLOR` nor a dumb terminal says otherwise.
    var usesColor: Bool { isInteractive && allowsColor }

    /// The same for data.
    var colorsData: Bool { isOutputWatched && allowsColor }

    private var allowsColor: Bool { (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb" }

    /// The text in a colour where data may be coloured.
    func colored(_ text: String, _ color: TerminalColor) -> String {
        colorsData ? "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// The process's own streams and environment.
    static func process() -> CommandIO {
        CommandIO(
            output: { text in
                do {
                    try FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
                } catch {
                    throw CommandError(
                        .failed, "cannot write to standard output: \(String(cString: strerror(errno)))")
                }
            },
            talk: { text in try? FileHandle.standardError.write(contentsOf: Data(text.utf8)) },
            input: { [UInt8](try FileHandle.standardInput.readToEnd() ?? Data()) },
            environment: ProcessInfo.processInfo.environment,
            isInteractive: isatty(STDERR_FILENO) == 1, isOutputWatched: isatty(STDOUT_FILENO) == 1,
            width: terminalWidth, isInBackground: isInBackground(),
            ask: askWithoutEcho, askOpenly: askWithEcho)
    }

    /// Nil when standard output is no terminal, or one that does not say.
    private static var terminalWidth: Int? {
        var size = winsize()
        guard isatty(STDOUT_FILENO) == 1, ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0
        else { return nil }
        return Int(size.ws_col)
    }

    private static func isInBackground() -> Bool {
        let foreground = tcgetpgrp(STDERR_FILENO)
        return foreground > 0 && foreground != getpgrp()
    }

    private static let askWithEcho: @Sendable (String) -> String? = { question in
        guard isatty(STDIN_FILENO) == 1 else { return nil }
        try? FileHandle.standardError.write(contentsOf: Data((question + ": ").utf8))
        return readLine() ?? ""
    }

    private static let askWithoutEcho: @Sendable (String) -> String? = { question in
        var before = termios()
        guard isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &before) == 0 else { return nil }
        var silent = before
        // Not ISIG either: Ctrl-C would end the program and leave the terminal without echo.
        silent.c_lflag &= ~tcflag_t(ECHO | ISIG)
        try? FileHandle.standardError.write(contentsOf: Data((question + ": ").utf8))
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        defer {
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
            try? FileHandle.standardError.write(contentsOf: Data("\n".utf8))
        }
        let answer = readLine() ?? ""
        return answer.utf8.contains(0x03) ? "" : answer
    }
}
