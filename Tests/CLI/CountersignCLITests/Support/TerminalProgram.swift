import Foundation

/// A process on a pseudo-terminal, which a test types into. It is killed with this object.
final class TerminalProgram: Sendable {
    /// The output, including the echo of the input.
    let screen = RecordedText()
    private let process: Process
    private let master: Int32
    /// Held open, so that the terminal outlives the process.
    private let slave: Int32
    private let ends: AsyncStream<Void>

    init(_ process: Process) throws {
        self.process = process
        var (master, slave): (Int32, Int32) = (-1, -1)
        var size = winsize(ws_row: 40, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0)
        guard openpty(&master, &slave, nil, nil, &size) == 0 else { throw POSIXError(.ENOTTY) }
        for end in [master, slave] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (self.master, self.slave) = (master, slave)
        let terminal = FileHandle(fileDescriptor: slave)
        process.standardInput = terminal
        process.standardOutput = terminal
        process.standardError = terminal
        let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
        self.ends = ends
        process.terminationHandler = { _ in continuation.yield() }
        try process.run()
        // Ends when the last process has closed the terminal.
        Thread { [screen, master] in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while case let count = read(master, &buffer, buffer.count), count > 0 {
                screen.append(String(decoding: buffer.prefix(count), as: UTF8.self))
            }
            close(master)
        }.start()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        close(slave)
    }

    func terminate() { process.terminate() }

    /// Whether the terminal shows what is typed.
    var echoes: Bool {
        var settings = termios()
        return tcgetattr(slave, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }

    func type(_ text: String) {
        let bytes = Array(text.utf8)
        _ = write(master, bytes, bytes.count)
    }

    /// Types `text` and waits until new output of the terminal contains `expected`.
    func type(_ text: String, waitFor expected: String) async throws {
        let before = screen.text.utf8.count
        type(text)
        try await screen.wait {
            String(decoding: $0.utf8.dropFirst(before), as: UTF8.self).contains(expected)
        }
    }

    /// Waits for the end. Returns the exit status, or the negative number of the signal that ended it.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, as at the time limit of the test.
    func end() async throws -> Int32 {
        _ = await ends.first { _ in true }
        guard !process.isRunning else { throw CancellationError() }
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }
}
