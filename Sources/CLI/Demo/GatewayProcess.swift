internal import CountersignCore
internal import Dispatch
internal import Foundation

/// A child process that runs `countersign serve`. If the process ends by itself, it is restarted, up to ten times.
final class GatewayProcess: Sendable {
    private struct State {
        var process: Process?
        var port = 0
        /// Whether `process` has printed its URL.
        var isListening = false
        var isStopping = false
        var restarts = 0
    }

    private static let maximumRestarts = 10

    private let state = Lock(State())
    private let executable: String
    private let dataDirectory: String
    private let report: @Sendable (String) -> Void

    init(executable: String, dataDirectory: String, report: @escaping @Sendable (String) -> Void) {
        self.executable = executable
        self.dataDirectory = dataDirectory
        self.report = report
    }

    deinit {
        // The child must not outlive this object.
        if let process = state.withLock({ $0.process }), process.isRunning { process.terminate() }
    }

    var restarts: Int { state.withLock { $0.restarts } }

    /// Terminates the gateway, or kills it after 20 seconds. Returns its exit status; nil if it did not run.
    func stop() async -> Int32? {
        let process = state.withLock { state in
            state.isStopping = true
            return state.process
        }
        guard let process else { return nil }
        return await withCheckedContinuation { continuation in
            // On a dispatch queue, because waiting would block a thread of the cooperative pool.
            DispatchQueue.global().async {
                if process.isRunning { process.terminate() }
                DispatchQueue.global().asyncAfter(deadline: .now() + 20) {
                    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
                }
                process.waitUntilExit()
                continuation.resume(returning: process.terminationStatus)
            }
        }
    }

    /// Starts the gateway; 0 is a free port. Throws `unavailable` if it does not start, `interrupted` after ``stop()``.
    @discardableResult func start(port: Int = 0) async throws(CommandError) -> URL {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = ["serve", "--data", dataDirectory, "--port", String(port)]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        process.terminationHandler = { [weak self] process in self?.restart(after: process) }
        do {
            // Under the lock, so that `stop()` either ends this process or prevents its start.
            try state.withLock { state in
                guard !state.isStopping else { throw CommandError(.interrupted, "it was stopped") }
                try process.run()
                (state.process, state.isListening) = (process, false)
            }
        } catch {
            throw error as? CommandError ?? CommandError(.unavailable, "cannot run \(executable)")
        }
        let line = await withTaskCancellationHandler {
            await Self.firstLine(of: output.fileHandleForReading)
        } onCancel: {
            kill(process.processIdentifier, SIGKILL)
        }
        guard let line, let url = URL(string: line), url.port != nil else {
            throw CommandError(
                .unavailable, "the gateway did not start",
                hint: "`countersign serve --data \(dataDirectory.quotedForShell) --port 0` prints the reason")
        }
        report("The gateway listens on \(url) (process \(process.processIdentifier)).")
        state.withLock { ($0.port, $0.isListening) = (url.port ?? 0, true) }
        // The termination handler ignores a process that ends before `isListening` is true.
        if !process.isRunning { restart(after: process) }
        return url
    }

    /// Starts the gateway again if `process` has listened. Otherwise `start` reports the failure to its caller.
    private func restart(after process: Process) {
        let port = state.withLock { state -> Int? in
            guard state.process === process, state.isListening, !state.isStopping else { return nil }
            state.isListening = false
            return state.port
        }
        guard let port, beginRestart() else { return }
        let how = process.terminationReason == .uncaughtSignal ? "signal" : "status"
        report("The gateway ended with \(how) \(process.terminationStatus); restarting it.")
        Task { [self] in
            // Another process may use the port for a moment.
            repeat {
                do throws(CommandError) {
                    try await start(port: port)
                    return
                } catch {
                    report("The gateway could not be restarted: \(error.reason)")
                }
            } while beginRestart()
        }
    }

    /// Counts a restart. Returns false at the limit or after ``stop()``.
    private func beginRestart() -> Bool {
        state.withLock { state in
            guard !state.isStopping, state.restarts < Self.maximumRestarts else { return false }
            state.restarts += 1
            return true
        }
    }

    /// The first line of a stream; nil if the stream ends before a line is complete.
    static func firstLine(of handle: FileHandle) async -> String? {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var bytes: [UInt8] = []
                while let next = try? handle.read(upToCount: 1), let byte = next.first {
                    if byte == UInt8(ascii: "\n") {
                        return continuation.resume(returning: String(decoding: bytes, as: UTF8.self))
                    }
                    bytes.append(byte)
                }
                continuation.resume(returning: nil)
            }
        }
    }
}
