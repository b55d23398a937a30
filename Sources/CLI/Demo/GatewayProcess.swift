internal import CountersignCore
internal import Dispatch
internal import Foundation

/// `countersign serve` as a child process. It is restarted up to ten times after it was killed.
final class GatewayProcess: Sendable {
    private struct State {
        var process: Process?
        var port = 0
        var isStopping = false
        var restarts = 0
    }

    private static let maximumRestarts = 10

    private let state = Lock(State())
    private let executable: String
    private let dataDirectory: String
    private let say: @Sendable (String) -> Void

    init(executable: String, dataDirectory: String, say: @escaping @Sendable (String) -> Void) {
        self.executable = executable
        self.dataDirectory = dataDirectory
        self.say = say
    }

    deinit {
        // The child must not outlive this object.
        if let process = state.withLock({ $0.process }), process.isRunning { process.terminate() }
    }

    var restarts: Int { state.withLock { $0.restarts } }

    /// Starts the gateway on a free port. Throws `unavailable` if it does not start.
    func start() async throws(CommandError) -> URL {
        let url = try await launch(port: 0)
        state.withLock { $0.port = url.port ?? 0 }
        return url
    }

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

    private func launch(port: Int) async throws(CommandError) -> URL {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = ["serve", "--data", dataDirectory, "--port", String(port)]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        process.terminationHandler = { [weak self] process in self?.ended(process) }
        do {
            try process.run()
        } catch {
            throw CommandError(.unavailable, "cannot run \(executable)")
        }
        state.withLock { $0.process = process }
        let line = await withTaskCancellationHandler {
            await Self.firstLine(of: output.fileHandleForReading)
        } onCancel: {
            kill(process.processIdentifier, SIGKILL)
        }
        guard let line, let url = URL(string: line), url.port != nil else {
            state.withLock { $0.process = nil }
            throw CommandError(
                .unavailable, "the gateway did not start",
                hint: "`countersign serve --data '\(dataDirectory)' --port 0` prints the reason")
        }
        say("The gateway listens on \(url) (process \(process.processIdentifier)).")
        return url
    }

    private func ended(_ process: Process) {
        let port = state.withLock { state -> Int? in
            // Until the gateway listens, `launch` handles the end of the process.
            guard state.process === process, !state.isStopping, state.port != 0 else { return nil }
            state.process = nil
            return state.port
        }
        guard let port, mayRestart() else { return }
        let how = process.terminationReason == .uncaughtSignal ? "signal" : "status"
        say("The gateway ended with \(how) \(process.terminationStatus); restarting it.")
        Task { [self] in
            // Another process may use the port for a moment.
            repeat {
                do throws(CommandError) {
                    _ = try await launch(port: port)
                    return
                } catch {
                    say("The gateway could not be restarted: \(error.reason)")
                }
            } while mayRestart()
        }
    }

    private func mayRestart() -> Bool {
        state.withLock { state in
            guard !state.isStopping, state.restarts < Self.maximumRestarts else { return false }
            state.restarts += 1
            return true
        }
    }

    /// The first line of a stream; nil if the stream ends before.
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
