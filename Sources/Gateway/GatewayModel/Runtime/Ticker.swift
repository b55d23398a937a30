internal import CountersignCore
package import Foundation

/// Calls a function periodically on a queue, one call at a time, until it is stopped.
package final class Ticker: Sendable {
    private let queue: DispatchQueue
    private let seconds: Double
    private let timer = Lock<(any DispatchSourceTimer)?>(nil)

    package init(queue: DispatchQueue, everySeconds seconds: Double) {
        self.queue = queue
        self.seconds = seconds
    }

    deinit {
        stop()
    }

    package func start(_ work: @escaping @Sendable () -> Void) {
        let source = DispatchSource.makeTimerSource(queue: queue)
        source.schedule(deadline: .now() + seconds, repeating: seconds)
        source.setEventHandler(handler: work)
        source.resume()
        timer.withLock { timer in
            timer?.cancel()
            timer = source
        }
    }

    /// Stops further calls. A running call may still finish.
    package func stop() {
        timer.withLock { timer in
            timer?.cancel()
            timer = nil
        }
    }
}
