internal import Foundation

/// SIGTERM and Ctrl-C as a stream. The second signal ends the process immediately. SIGHUP calls `reload`.
///
/// The handler writes to a pipe that a thread reads. A `DispatchSource` is not suitable: on Linux, it
/// installs its own handler some time after `resume()`, so any call of `signal(_, SIG_IGN)` is a race.
struct StopSignals: Sendable {
    private let stream: AsyncStream<Int32>

    // Written once, before the handlers are installed; the handlers only read it.
    nonisolated(unsafe) fileprivate static var writeEnd: Int32 = -1

    /// Installs the handlers. Call it once in a process.
    init(reload: (@Sendable () -> Void)? = nil) {
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self)
        self.stream = stream
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        Self.writeEnd = ends[1]
        let readEnd = ends[0]
        Thread.detachNewThread {
            var count = 0
            while let number = Self.next(from: readEnd) {
                if number == SIGHUP {
                    reload?()
                    continue
                }
                count += 1
                if count > 1 { exit(ExitCode.interrupted.rawValue) }
                continuation.yield(number)
            }
        }
        signal(SIGTERM, writeSignal)
        signal(SIGINT, writeSignal)
        if reload != nil { signal(SIGHUP, writeSignal) }
    }

    func first() async -> Int32? {
        await stream.first { _ in true }
    }

    /// Runs `work` in a task that the first signal cancels. Returns its result, and whether it was cancelled.
    func cancelling<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async -> (result: Result<Value, any Error>, isCancelled: Bool) {
        let running = Task { try await work() }
        let waiting = Task { if await first() != nil { running.cancel() } }
        let result = await running.result
        waiting.cancel()
        return (result, running.isCancelled)
    }

    private static func next(from readEnd: Int32) -> Int32? {
        var byte: UInt8 = 0
        while true {
            let count = read(readEnd, &byte, 1)
            if count == 1 { return Int32(byte) }
            if count == 0 || errno != EINTR { return nil }
        }
    }
}

/// The signal handler. Calls only `write`, which is async-signal-safe (POSIX, 2.4.3).
private let writeSignal: @convention(c) (Int32) -> Void = { number in
    let before = errno
    var byte = UInt8(truncatingIfNeeded: number)
    _ = write(StopSignals.writeEnd, &byte, 1)
    errno = before
}
