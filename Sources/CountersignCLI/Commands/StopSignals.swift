internal import CountersignCore
internal import Dispatch
internal import Foundation

/// SIGTERM and SIGINT as a stream. A second signal ends the process at once, as long as this object lives.
///
/// Made before anything is announced: a signal that comes earlier ends the process as usual, and a later one is seen.
final class StopSignals {
    /// Yields each signal's number.
    let stream: AsyncStream<Int32>
    private let sources: [any DispatchSourceSignal]

    init() {
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self)
        self.stream = stream
        let count = Lock(0)
        sources = [SIGTERM, SIGINT].map { signalNumber in
            let source = DispatchSource.makeSignalSource(signal: signalNumber, queue: .global())
            source.setEventHandler { @Sendable in
                let seen = count.withLock { count in
                    count += 1
                    return count
                }
                if seen > 1 { exit(ExitCode.interrupted.rawValue) }
                continuation.yield(signalNumber)
            }
            source.resume()
            // Only after the source is there, or a signal in between would be lost.
            signal(signalNumber, SIG_IGN)
            return source
        }
    }

    /// Waits for the first signal.
    func first() async -> Int32? {
        await stream.first { _ in true }
    }
}
