internal import CountersignCore
internal import Foundation

/// The streams and environment of a command. Data goes to standard output, messages to standard error.
struct CommandIO: Sendable {
    /// Writes data. Throws if that fails, for example on a full disk.
    let output: @Sendable (String) throws -> Void
    /// Writes messages: progress, notes, errors.
    let talk: @Sendable (String) -> Void
    let input: @Sendable () throws -> [UInt8]
    let environment: [String: String]
    /// Whether standard error is a terminal, so that progress can be redrawn in place.
    let isInteractive: Bool
    /// Whether standard output is a terminal, so that data can be coloured.
    var isOutputWatched = false
    /// The width of the terminal on standard output; nil without one.
    var width: Int?
    /// The width of the terminal on standard error; nil without one.
    var messageWidth: Int?
    /// Whether the process runs in the background, so that the terminal's input goes to another job.
    var isInBackground = false
    /// Asks for a secret without echo; nil without a terminal.
    var ask: @Sendable (String) -> String? = { _ in nil }
    /// Asks for a line; nil without a terminal.
    var askOpenly: @Sendable (String) -> String? = { _ in nil }
    /// Runs a closure after this many seconds.
    var schedule: @Sendable (Double, @escaping @Sendable () -> Void) -> Void = { seconds, run in
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds, execute: run)
    }

    /// The current time in milliseconds since 1970, for relative times. Nil without a terminal: dates are printed then.
    var now: Int64? { isOutputWatched ? Milliseconds(Date()).count : nil }

    /// A text that replaces the terminal's current line. Truncated, because a line that wraps cannot be replaced.
    func inPlace(_ text: String) -> String {
        "\r\u{1B}[K\(messageWidth.map { text.prefix(columns: max(1, $0 - 1)) } ?? text[...])"
    }

    /// An environment variable; nil if it is unset or empty.
    func variable(_ name: String) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    func print(_ line: String) throws {
        try output(line + "\n")
    }

    func say(_ line: String) {
        talk(line + "\n")
    }

    /// Whether messages may be coloured, which depends on the terminal and `NO_COLOR`.
    var usesColor: Bool { isInteractive && allowsColor }

    var colorsData: Bool { isOutputWatched && allowsColor }

    private var allowsColor: Bool { variable("NO_COLOR") == nil && environment["TERM"] != "dumb" }

    func colored(_ text: String, _ color: TerminalColor) -> String {
        colorsData ? "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m" : text
    }

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
            input: {
                if isatty(STDIN_FILENO) == 1 {
                    try? FileHandle.standardError.write(
                        contentsOf: Data("Reading the terminal; Ctrl-D ends it.\n".utf8))
                }
                return [UInt8](try FileHandle.standardInput.readToEnd() ?? Data())
            },
            environment: ProcessInfo.processInfo.environment,
            isInteractive: isatty(STDERR_FILENO) == 1, isOutputWatched: isatty(STDOUT_FILENO) == 1,
            width: terminalWidth(of: STDOUT_FILENO), messageWidth: terminalWidth(of: STDERR_FILENO),
            isInBackground: isInBackground(),
            ask: askWithoutEcho, askOpenly: askWithEcho)
    }

    /// Ends the process by SIGINT, even if the process ignores SIGINT or this thread blocks SIGINT.
    private static func endByInterrupt() -> Never {
        var interrupt = sigset_t()
        sigemptyset(&interrupt)
        sigaddset(&interrupt, SIGINT)
        signal(SIGINT, SIG_DFL)
        pthread_sigmask(SIG_UNBLOCK, &interrupt, nil)
        raise(SIGINT)
        exit(ExitCode.interrupted.rawValue)
    }

    /// Nil if the stream is not a terminal or its width is unknown.
    private static func terminalWidth(of stream: Int32) -> Int? {
        var size = winsize()
        guard isatty(stream) == 1, ioctl(stream, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0
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

    // The terminal settings that `endWithEcho` restores. Written before the signal handlers are installed, and only
    // read by the handlers. Not a static `termios`, because Swift 6.3 allocates 57 of its 60 bytes.
    nonisolated(unsafe) fileprivate static let echoing = UnsafeMutablePointer<termios>.allocate(capacity: 1)

    /// Restores the terminal after the answer, and also before SIGINT or SIGTERM ends the process.
    private static let askWithoutEcho: @Sendable (String) -> String? = { question in
        var before = termios()
        guard isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &before) == 0 else { return nil }
        var silent = before
        // Ctrl-C ends the line and sends no signal, so that the terminal is restored before the process ends.
        silent.c_lflag &= ~tcflag_t(ECHO | ISIG)
        withUnsafeMutableBytes(of: &silent.c_cc) { $0[Int(VEOL)] = 0x03 }
        echoing.initialize(to: before)
        let handlers = [SIGTERM, SIGINT].map { ($0, signal($0, endWithEcho)) }
        defer { for (number, handler) in handlers { signal(number, handler) } }
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        try? FileHandle.standardError.write(contentsOf: Data((question + ": ").utf8))
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while answer.last != 0x0A, answer.last != 0x03 {
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            guard count > 0 else { break }
            answer += buffer.prefix(count)
        }
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
        try? FileHandle.standardError.write(contentsOf: Data("\n".utf8))
        if answer.last == 0x03 { endByInterrupt() }
        return String(decoding: answer.prefix { $0 != 0x0A }, as: UTF8.self)
    }
}

/// A signal handler that ends the process. Calls only async-signal-safe functions (POSIX, 2.4.3).
private let endWithEcho: @convention(c) (Int32) -> Void = { number in
    tcsetattr(STDIN_FILENO, TCSANOW, CommandIO.echoing)
    signal(number, SIG_DFL)
    raise(number)
}

extension String {
    var quotedForShell: String { "'" + replacing("'", with: #"'\''"#) + "'" }
}
