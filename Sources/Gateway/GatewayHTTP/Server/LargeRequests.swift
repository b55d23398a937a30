internal import CountersignCore

/// Handles requests whose bodies may take long to decompress or to parse, one after another on its own queue,
/// so that they do not block the server's threads.
final class LargeRequests: Sendable {
    /// The server's thread handles smaller bodies itself, in a few milliseconds at worst.
    static let smallBytes = 64 * 1024

    private let queue: BoundedQueue

    init(capacity: Int = 128) {
        queue = BoundedQueue(label: "large requests", capacity: capacity)
    }

    // `@unchecked Sendable`: only the queue uses a value until the lock publishes the value.
    private struct Work: @unchecked Sendable {
        let request: HTTPRequest
        /// Counts the body's memory until the work ends, even if the client has disconnected.
        let held: MemoryReservation
        var poll: (() -> HTTPResponse?)?
    }

    /// Handles a request on the queue. Returns a deferred outcome, or 503 if too many requests wait.
    func outcome(
        of request: HTTPRequest, holding held: MemoryReservation,
        _ handle: @escaping @Sendable (HTTPRequest) -> HTTPOutcome
    ) -> HTTPOutcome {
        guard queue.take() else {
            return .answer(
                request.failure(
                    503, "overloaded",
                    "too many large requests are waiting; nothing was stored, send it again"
                ).with("Retry-After", "1"))
        }
        let work = Work(request: request.detached(), held: held)
        request.body = []
        let ready = Lock<Work?>(nil)
        return .later(
            start: { [queue] resume in
                queue.async {
                    var done = work
                    switch handle(work.request) {
                    case .answer(let response):
                        done.poll = { response }
                        ready.withLock { $0 = done }
                        resume()
                    case .later(let start, let poll):
                        done.poll = poll
                        ready.withLock { $0 = done }
                        start(resume)
                    }
                }
            },
            poll: {
                guard let done = ready.withLock({ $0 }), let response = done.poll?() else { return nil }
                request.context = done.request.context
                request.body = done.request.body
                return response
            })
    }
}
